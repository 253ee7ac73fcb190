import Terms
import Testing

@testable import HTTP

struct WrittenFieldsTests {
  @Test func fieldsWrittenAsBytesEqualThoseOfAList() {
    let written = HTTPFields { fields in
      fields.add("Vary", "Accept")
      fields.add("Length", room: 4) { $0.append(decimal: 1234) }
      fields.add("Empty", room: 0) { _ in }
      fields.add("Text", String(repeating: "x", count: 1000))
    }
    #expect(written == ["Vary": "Accept", "Length": "1234", "Empty": "", "Text": String(repeating: "x", count: 1000)])
    #expect(written["length"] == "1234")
    #expect(written.count == 4)
  }

  @Test func aWrittenValueCannotEndItsLine() {
    let written = HTTPFields { fields in
      fields.add("Name", "a\r\nSet-Cookie: b\u{0}\t\u{7f}")
    }
    #expect(written == ["Name": "a  Set-Cookie: b \t "])
  }

  @Test func aRepresentationWithAllFieldsIsSentUnlessTheClientHasIt() throws {
    let fields: HTTPFields = ["Cache-Control": "no-cache", "Content-Type": "text/plain", "ETag": "\"v1\""]
    let representation = Representation(body: .bytes([1, 2]), allFields: fields)
    let whole = HTTPResponse(
      representation, for: try HTTPRequest(method: .get, target: "/", fields: ["Range": "bytes=0-0"]))
    #expect(whole.status == .ok && whole.fields == fields)
    let spared = HTTPResponse(
      representation, for: try HTTPRequest(method: .get, target: "/", fields: ["If-None-Match": "\"v1\""]))
    #expect(spared.status == .notModified && spared.fields["ETag"] == "\"v1\"")
  }

  @Test(arguments: [HTTPVersion.http10, .http11], [true, false])
  func theLongestHeadHasRoom(_ version: HTTPVersion, isPersistent: Bool) {
    let long = String(repeating: "x", count: 10_000)
    let writer = ResponseWriter(defaults: ["Default": long])
    let response = HTTPResponse(
      HTTPStatus(code: 599), fields: ["Field": long, "Connection": "close", "Date": "now"],
      body: .stream(length: .max) { nil })
    let head = writer.head(
      of: response, framing: .length(.max),
      .init(
        version: version, isPersistent: isPersistent, requestID: String(repeating: "i", count: 128),
        dateLine: Array("Date: \(HTTPDate(seconds: 0))\r\n".utf8)))
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
    #expect(lines[0] == "HTTP/1.1 599 " && lines.suffix(2) == ["", ""])
    #expect(lines.contains("Field: \(long)") && lines.contains("Default: \(long)"))
    #expect(lines.contains("Content-Length: \(Int64.max)") && lines.count { $0.hasPrefix("Date: ") } == 1)
    #expect(lines.contains("Connection: close") == !isPersistent)
  }

  @Test(arguments: [0, 1, 9, 10, 99, 100, 12_345, -1, -10, Int64.max, Int64.min])
  func aNumberIsAppendedInDecimalDigits(_ number: Int64) {
    var text = Array("n=".utf8)
    text.append(addingCapacity: 20) { $0.append(decimal: number) }
    #expect(String(decoding: text, as: UTF8.self) == "n=\(number)")
  }
}
