import Testing

@testable import HTTP

private let content = Array("0123456789".utf8)
private let modified = "Sun, 06 Nov 1994 08:49:37 GMT"

private func answer(
  _ fields: HTTPFields, method: HTTPMethod = .get, etag: String? = "\"v1\""
) async throws -> (status: Int, fields: HTTPFields, body: String) {
  let representation = Representation(
    body: .bytes(content), contentType: "text/plain", etag: etag, cacheControl: "no-cache",
    fields: ["Last-Modified": modified], acceptsRanges: true)
  let response = HTTPResponse(representation, for: try HTTPRequest(method: method, target: "/", fields: fields))
  return (response.status.code, response.fields, String(decoding: try await response.body.collect(), as: UTF8.self))
}

@Suite("Line 11: ranges") struct ByteRangeTests {
  @Test(arguments: [
    ("bytes=0-0", "0", "bytes 0-0/10"), ("bytes=2-4", "234", "bytes 2-4/10"), ("bytes=7-", "789", "bytes 7-9/10"),
    ("bytes=-3", "789", "bytes 7-9/10"), ("bytes=-99", "0123456789", "bytes 0-9/10"),
    ("bytes=8-99", "89", "bytes 8-9/10"), ("BYTES=1-1", "1", "bytes 1-1/10"), ("bytes= 1-1 ", "1", "bytes 1-1/10"),
    ("bytes=5-99999999999999999999", "56789", "bytes 5-9/10"), ("bytes=99-,1-2", "12", "bytes 1-2/10"),
    ("bytes=,1-2,", "12", "bytes 1-2/10"), ("bytes=0-9", "0123456789", "bytes 0-9/10"),
    ("bytes=0-10", "0123456789", "bytes 0-9/10"), ("bytes=9-10", "9", "bytes 9-9/10"),
  ])
  func aRangeIsServed(_ range: String, _ body: String, _ contentRange: String) async throws {
    let answer = try await answer(["Range": range])
    #expect(answer.status == 206)
    #expect(answer.body == body)
    #expect(answer.fields["Content-Range"] == contentRange)
    #expect(answer.fields["ETag"] == "\"v1\"")
  }

  @Test(arguments: ["bytes=10-", "bytes=10-11", "bytes=-0", "bytes=99999999999999999999-", "bytes=20-,30-40"])
  func aRangeOutsideTheContentIs416WithTheLength(_ range: String) async throws {
    let answer = try await answer(["Range": range])
    #expect(answer.status == 416)
    #expect(answer.fields["Content-Range"] == "bytes */10")
  }

  @Test(arguments: [
    "bytes=4-2", "bytes=a-b", "bytes=1", "bytes=", "bytes", "lines=1-2", "bytes=1-2-3", "bytes=--1", "bytes=0x1-2",
    "bytes=0-1,1-2", "bytes=0-,2-3", "bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8", "bytes=1-2,x",
  ])
  func whatIsNoRangeOrTooManyIsAnsweredWhole(_ range: String) async throws {
    let answer = try await answer(["Range": range])
    #expect(answer.status == 200)
    #expect(answer.body == "0123456789")
    #expect(answer.fields["Accept-Ranges"] == "bytes")
  }

  @Test("adjacent ranges are no overlap, and eight ranges are not too many", arguments: [2, 8])
  func severalRanges(count: Int) {
    let asked = (0..<count).map { "\($0)-\($0)" }.joined(separator: ",")
    let ranges = (0..<Int64(count)).map { $0..<$0 + 1 }
    #expect(ByteRangeRequest("bytes=\(asked)", length: 10) == .ranges(ranges))
  }

  @Test func severalRangesAreServedAsMultipart() async throws {
    let answer = try await answer(["Range": "bytes=0-1,8-"])
    #expect(answer.status == 206)
    let type = try #require(answer.fields["Content-Type"])
    let boundary = try #require(ParameterizedValue(type)?["boundary"])
    #expect(
      answer.body
        == "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01"
        + "\r\n--\(boundary)\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n89"
        + "\r\n--\(boundary)--\r\n"
    )
    #expect(answer.fields["Content-Range"] == nil)
  }

  @Test func onlyGetServesRanges() async throws {
    #expect(try await answer(["Range": "bytes=0-1"], method: .head).status == 200)
  }
}

@Suite("Line 11: conditions") struct PreconditionTests {
  struct Case: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var status: Int
    var fields: HTTPFields
    var method = HTTPMethod.get

    init(_ name: String, _ status: Int, _ fields: HTTPFields, _ method: HTTPMethod = .get) {
      (testDescription, self.status, self.fields, self.method) = (name, status, fields, method)
    }
  }

  static let before = "Sat, 05 Nov 1994 08:49:37 GMT"

  @Test(arguments: [
    Case("the same tag", 304, ["If-None-Match": "\"v1\""]),
    Case("a list with the tag", 304, ["If-None-Match": "\"a\", \"v1\""]),
    Case("two fields, one with the tag", 304, ["If-None-Match": "\"a\"", "if-none-match": "\"v1\""]),
    Case("a weak tag is compared weakly", 304, ["If-None-Match": "W/\"v1\""]),
    Case("an asterisk", 304, ["If-None-Match": "*"]),
    Case("HEAD too", 304, ["If-None-Match": "\"v1\""], .head),
    Case("another tag", 200, ["If-None-Match": "\"v2\""]),
    Case("a tag with a comma in it", 200, ["If-None-Match": "\"v1,x\""]),
    Case("a change of what is there", 412, ["If-None-Match": "*"], .put),
    Case("If-None-Match wins over If-Modified-Since", 200, ["If-None-Match": "\"x\"", "If-Modified-Since": modified]),
    Case("304 wins over a range", 304, ["If-None-Match": "\"v1\"", "Range": "bytes=0-1"]),
    Case("not modified since", 304, ["If-Modified-Since": modified]),
    Case("modified since", 200, ["If-Modified-Since": before]),
    Case("If-Modified-Since with a range", 304, ["If-Modified-Since": modified, "Range": "bytes=0-1"]),
    Case("a date that is none", 200, ["If-Modified-Since": "now"]),
    Case("If-Match with the tag", 200, ["If-Match": "\"v0\", \"v1\""]),
    Case("If-Match with another", 412, ["If-Match": "\"v2\""]),
    Case("a tag without its quotes", 200, ["If-None-Match": "v1"]),
    Case("a lower-case w", 200, ["If-None-Match": "w/\"v1\""]),
    Case("an open quote", 200, ["If-None-Match": "\"v1"]),
    Case("a blank inside the quotes", 200, ["If-None-Match": "\"v1 \""]),
    Case("a broken tag beside a good one", 304, ["If-None-Match": "v0, \"v1\""]),
    Case("an empty condition", 200, ["If-None-Match": ""]),
    Case("If-Match with nothing in it", 412, ["If-Match": ""]),
    Case("If-Match without quotes", 412, ["If-Match": "v1"]),
    Case("If-Match compares strongly", 412, ["If-Match": "W/\"v1\""]),
    Case("If-Match with an asterisk", 200, ["If-Match": "*"]),
    Case("unmodified since", 200, ["If-Unmodified-Since": modified]),
    Case("not unmodified since", 412, ["If-Unmodified-Since": before]),
    Case("If-Range with the tag", 206, ["If-Range": "\"v1\"", "Range": "bytes=0-1"]),
    Case("If-Range with another", 200, ["If-Range": "\"v2\"", "Range": "bytes=0-1"]),
    Case("If-Range compares strongly", 200, ["If-Range": "W/\"v1\"", "Range": "bytes=0-1"]),
    Case("If-Range with the date", 206, ["If-Range": modified, "Range": "bytes=0-1"]),
    Case("If-Range with another date", 200, ["If-Range": before, "Range": "bytes=0-1"]),
    Case("If-Range saves from 416", 200, ["If-Range": "\"v2\"", "Range": "bytes=99-"]),
  ])
  func aConditionIsJudged(_ condition: Case) async throws {
    let answer = try await answer(condition.fields, method: condition.method)
    #expect(answer.status == condition.status)
    if condition.status == 304 {
      #expect(answer.fields["ETag"] == "\"v1\"")
      #expect(answer.fields["Cache-Control"] == "no-cache")
      #expect(answer.body.isEmpty)
    }
  }

  @Test func aWeakTagOfTheServerNeverValidatesARange() async throws {
    let answer = try await answer(["If-Range": "W/\"v1\"", "Range": "bytes=0-1"], etag: "W/\"v1\"")
    #expect(answer.status == 200)
  }

  @Test func aWeakTagOfTheServersPassesNoIfMatch() async throws {
    #expect(try await answer(["If-Match": "W/\"v1\""], etag: "W/\"v1\"").status == 412)
  }

  @Test func aCommaInsideATagBelongsToIt() async throws {
    #expect(try await answer(["If-None-Match": "\"a\", \"v,1\""], etag: "\"v,1\"").status == 304)
    #expect(try await answer(["If-None-Match": "\"v\", \"1\""], etag: "\"v,1\"").status == 200)
  }
}
