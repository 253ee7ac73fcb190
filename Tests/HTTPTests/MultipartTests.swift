import Testing

@testable import HTTP

private let form = """
  preamble\r
  --b\r
  Content-Disposition: form-data; name="title"\r
  \r
  a--b\r\n-b\r
  --b \r
  content-disposition: FORM-DATA; name="file"; filename="C:\\\\a \\"q\\".wav"\r
  Content-Type: audio/wav\r
  \r
  \r
  -\r\n--\r\n--c\r
  --b\r
  Content-Disposition: form-data; name=empty\r
  \r
  --b--\r
  epilogue --b
  """

private struct Part: Equatable {
  var fields: [String]
  var content: String
}

/// Feeds `pieces` to a parser and collects its parts.
private func parse(_ pieces: [[UInt8]], boundary: String = "b") throws(MultipartError) -> (parts: [Part], ended: Bool) {
  var parser = MultipartParser(boundary: boundary, limits: MultipartLimits())
  var parts: [Part] = []
  var open = false
  for piece in pieces {
    parser.append(piece)
    events: while true {
      switch try parser.next() {
      case .needsInput: break events
      case .ended: return (parts, !open)
      case .part(let fields):
        #expect(!open)
        open = true
        parts.append(Part(fields: fields.map { "\($0.name): \($0.value)" }, content: ""))
      case .content(let bytes): parts[parts.count - 1].content += String(decoding: bytes, as: UTF8.self)
      case .partEnded: open = false
      }
    }
  }
  return (parts, false)
}

private func read(_ text: String, type: String = "multipart/form-data; boundary=b") async throws -> [(
  MultipartPart, String
)] {
  let request = try HTTPRequest(method: .post, target: "/", body: Array(text.utf8))
  var reader = try #require(MultipartReader(contentType: type, body: request.body))
  var parts: [(MultipartPart, String)] = []
  while let part = try await reader.nextPart() {
    var content: [UInt8] = []
    while let piece = try await reader.read() { content += piece }
    parts.append((part, String(decoding: content, as: UTF8.self)))
  }
  return parts
}

private func part(_ disposition: String) -> String {
  "--b\r\nContent-Disposition: \(disposition)\r\n\r\nx\r\n--b--\r\n"
}

@Suite struct MultipartTests {

  @Test("a delimiter is found wherever it begins and wherever pieces end, among parts of itself")
  func delimiters() throws {
    for boundary in ["b", "--b", "abab", "----WebKitFormBoundary7MA4YWxkTrZu0gW"] {
      let delimiter = "\r\n--" + boundary
      for count in 0..<2 * delimiter.utf8.count {
        let content = String(String(repeating: delimiter.dropLast() + "\r\r\n-", count: 3).prefix(count))
        let text = "--\(boundary)\r\nContent-Disposition: form-data; name=a\r\n\r\n\(content)\(delimiter)--"
        let bytes = Array(text.utf8)
        let pieces = stride(from: 0, to: bytes.count, by: count + 1).map { Array(bytes[$0...].prefix(count + 1)) }
        let (parts, ended) = try parse(pieces, boundary: boundary)
        #expect(ended && parts.map(\.content) == [content], "\(boundary), \(count)")
      }
    }
  }

  @Test func splittingTheBytesDoesNotChangeTheParts() throws {
    let bytes = Array(form.utf8)
    let whole = try parse([bytes])
    #expect(whole.ended)
    #expect(whole.parts.map(\.content) == ["a--b\r\n-b", "\r\n-\r\n--\r\n--c", ""])
    #expect(whole.parts[1].fields.count == 2)
    for cut in 0...bytes.count {
      #expect(try parse([Array(bytes[..<cut]), Array(bytes[cut...])]).parts == whole.parts)
    }
    #expect(try parse(bytes.map { [$0] }).parts == whole.parts)
  }

  @Test func aReaderReturnsNamesFilenamesAndContent() async throws {
    let parts = try await read(form)
    #expect(parts.map(\.0.name) == ["title", "file", "empty"])
    #expect(parts[1].0.filename == "a \"q\".wav")
    #expect(parts[1].0.fields["Content-Type"] == "audio/wav")
  }

  @Test func theUnreadRestOfAPartIsSkipped() async throws {
    let request = try HTTPRequest(method: .post, target: "/", body: Array(form.utf8))
    var reader = try #require(MultipartReader(contentType: "multipart/form-data; boundary=\"b\"", body: request.body))
    var names: [String] = []
    while let part = try await reader.nextPart() { names.append(part.name) }
    #expect(names == ["title", "file", "empty"])
    #expect(try await request.body.read() == nil)
  }

  @Test func contentLongerThanAnyBufferPassesThrough() async throws {
    let long = String(repeating: "0123456789\r\n--", count: 50_000)
    let parts = try await read("--b\r\nContent-Disposition: form-data; name=f\r\n\r\n\(long)\r\n--b--\r\n")
    #expect(parts.map(\.1) == [long])
  }

  @Test(arguments: [
    ("form-data; name=f; filename=plain.wav", "plain.wav"), ("form-data; name=f; filename=\"a;b=c.wav\"", "a;b=c.wav"),
    ("form-data; name=f; filename=\"é.wav\"", "é.wav"), ("form-data; name=f; filename*=UTF-8''%e2%82%ac.wav", "€.wav"),
    ("form-data; name=f; filename=x.wav; filename*=utf-8'en'a%20b.wav", "a b.wav"),
    ("form-data; name=f; filename=\"../../etc/passwd\"", "passwd"),
    ("form-data; name=f; filename=\"a/\u{301}b\"", "\u{301}b"),
    ("form-data; name=f; filename=\"C:\\dir\\s.wav\"", "s.wav"),
    ("form-data; name=f; filename=\"%22a%22%2F.wav\"", "\"a\"%2F.wav"),
    ("form-data ;name=f ; filename=\"\"", ""), ("form-data; filename*=latin1''x; name=f; filename=y.wav", "y.wav"),
  ])
  func filenamesAreTakenAsBrowsersAndCurlWriteThem(_ disposition: String, _ filename: String) async throws {
    #expect(try await read(part(disposition)).first?.0.filename == filename)
  }

  struct Broken: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var body: String
    var error: MultipartError

    init(_ name: String, _ body: String, _ error: MultipartError) {
      (testDescription, self.body, self.error) = (name, body, error)
    }
  }

  @Test(arguments: [
    Broken("no disposition", "--b\r\nX: y\r\n\r\nx\r\n--b--", .malformed(.disposition)),
    Broken("no name", part("form-data"), .malformed(.disposition)),
    Broken("another kind", part("file; name=f"), .malformed(.disposition)),
    Broken("a quote left open", part("form-data; name=\"f"), .malformed(.disposition)),
    Broken("text behind a delimiter", "--bx\r\n", .malformed(.delimiter)),
    Broken("a bare LF", "--b\nX: y\r\n\r\n", .malformed(.delimiter)),
    Broken("a line that is no field", "--b\r\nxy\r\n\r\n", .malformed(.field)),
    Broken("a bare LF behind a field", "--b\r\nX: y\n\r\n", .malformed(.field)),
    Broken("no closing delimiter", "--b\r\nContent-Disposition: form-data; name=f\r\n\r\nx", .truncated),
    Broken("no delimiter", "abc", .truncated), Broken("nothing", "", .truncated),
    Broken("a long preamble", String(repeating: "x", count: 5000), .malformed(.preamble)),
    Broken(
      "a long preamble in one piece with all the rest",
      String(repeating: "x", count: 5000) + "\r\n" + part("form-data; name=f"), .malformed(.preamble)),
    Broken("a long head", "--b\r\nX: " + String(repeating: "y", count: 9000), .partHeadTooLarge(limit: 8192)),
    Broken(
      "many parts",
      String(repeating: "--b\r\nContent-Disposition: form-data; name=f\r\n\r\nx\r\n", count: 65) + "--b--",
      .tooManyParts(limit: 64)),
  ])
  func aBodyThatBreaksARuleIsRefused(_ broken: Broken) async throws {
    await #expect(throws: broken.error) { try await read(broken.body) }
  }

  @Test(arguments: [
    "multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=b", "text/plain; boundary=b",
    "multipart/form-data; boundary=\"\(String(repeating: "x", count: 71))\"", "multipart/form-data; boundary=\"a ",
  ])
  func aContentTypeWithoutAValidBoundaryIsNone(_ type: String) throws {
    #expect(MultipartReader(contentType: type, body: .none) == nil)
  }
}
