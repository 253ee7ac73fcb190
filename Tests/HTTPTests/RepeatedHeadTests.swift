import Testing

@testable import HTTP

/// The parser compares a head with the one before instead of parsing it, as far as they are alike.
@Suite struct RepeatedHeadTests {
  private static let fields = "Host: a\r\nAccept: text/plain\r\n\r\n"

  private static let cases: [(first: String, second: String)] = [
    ("GET /a HTTP/1.1\r\n" + fields, "GET /a HTTP/1.1\r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "GET /b?c=d HTTP/1.1\r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "HEAD /a HTTP/1.1\r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "GET /a HTTP/1.0\r\n" + fields),
    ("GET /a HTTP/1.0\r\n" + fields, "GET /b HTTP/1.1\r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "GET http://b/a HTTP/1.1\r\n" + fields),
    ("GET http://b/a HTTP/1.1\r\n" + fields, "GET /b HTTP/1.1\r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "GET /b HTTP/1.1\r\nHost: b\r\n\r\n"),
    ("GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /b HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n"),
    ("GET /a HTTP/1.1\r\n" + fields, "\r\nGET /b HTTP/1.1\r\n" + fields),
    ("\r\nGET /a HTTP/1.1\r\n" + fields, "GET /b HTTP/1.1\r\n" + fields),
    // What followed an empty line doesn't follow a request line.
    ("\r\nGET /a HTTP/1.1\r\n" + fields, "GET /b HTTP/1.1\r\nGET /a HTTP/1.1\r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "GET /b HTTP/1.1\r\n\r\n"),
    ("GET /a HTTP/1.1\r\n" + fields, "GET \r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "FETCH /a HTTP/1.1\r\n" + fields),
    (
      "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
      "PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    ),
    (
      "GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    ),
    // The same path, or nearly.
    ("GET /a%2Fb/%63?d=e HTTP/1.1\r\n" + fields, "GET /a%2Fb/%63?f=%67+h&i HTTP/1.1\r\n" + fields),
    ("GET /a/b?c HTTP/1.1\r\n" + fields, "GET /a/b HTTP/1.1\r\n" + fields),
    ("GET /a/b?c HTTP/1.1\r\n" + fields, "GET /a/bc?c HTTP/1.1\r\n" + fields),
    ("GET /a/b?c HTTP/1.1\r\n" + fields, "GET /a/c?c HTTP/1.1\r\n" + fields),
    ("GET /a HTTP/1.1\r\n" + fields, "GET /a?b=%zz HTTP/1.1\r\n" + fields),
    ("GET /?a HTTP/1.1\r\n" + fields, "GET http://b?c HTTP/1.1\r\n" + fields),
    ("GET http://b/a?c HTTP/1.1\r\n" + fields, "GET /a?d HTTP/1.1\r\n" + fields),
    ("OPTIONS * HTTP/1.1\r\n" + fields, "GET * HTTP/1.1\r\n" + fields),
  ]

  @Test("a head is parsed alike after another one", arguments: cases.indices)
  func afterAnother(_ number: Int) throws {
    let (first, second) = (Array(Self.cases[number].first.utf8), Array(Self.cases[number].second.utf8))
    var fresh = RequestParser(limits: HTTPLimits())
    let expected = Self.outcome(of: second, &fresh)
    var used = RequestParser(limits: HTTPLimits())
    for _ in 0..<2 { #expect(try used.consume(first, from: 0, to: first.count).next == first.count) }
    #expect(Self.outcome(of: second, &used) == expected)
    #expect(used.isHead == fresh.isHead)
    // And so is the first one after the second, if that was valid.
    guard expected.hasPrefix("next") else { return }
    var alone = RequestParser(limits: HTTPLimits())
    #expect(Self.outcome(of: first, &used) == Self.outcome(of: first, &alone))
  }

  private final class Text: Sendable {
    let text: String

    init(_ text: String) { self.text = text }
  }

  @Test("what a handler makes of a head is remembered as long as the client sends no other")
  func reading() throws {
    var parser = RequestParser(limits: HTTPLimits())
    var read: [String] = []
    for target in ["/a", "/a", "/a", "/b", "/a"] {
      let bytes = Array("GET \(target) HTTP/1.1\r\n\(Self.fields)".utf8)
      let head = try #require(try parser.consume(bytes, from: 0, to: bytes.count).head)
      let text = HTTPRequest(head: head, body: .none, peer: "", id: "").reading {
        read.append(target)
        return Text(target)
      }
      #expect(text.text == target)
    }
    #expect(read == ["/a", "/a", "/b", "/a"])
  }

  @Test func aHeadThatComesInPiecesIsParsedAlikeAfterAnother() throws {
    let (first, second) = (Array(Self.cases[1].first.utf8), Array(Self.cases[1].second.utf8))
    var fresh = RequestParser(limits: HTTPLimits())
    let expected = Self.outcome(of: second, &fresh)
    for cut in 1..<second.count {
      var parser = RequestParser(limits: HTTPLimits())
      _ = try parser.consume(first, from: 0, to: first.count)
      #expect(try parser.consume(second, from: 0, to: cut).head == nil)
      let head = try #require(try parser.consume(second, from: cut, to: second.count).head)
      #expect("next \(second.count) \(Self.text(of: head))" == expected)
    }
  }

  private static func outcome(of bytes: [UInt8], _ parser: inout RequestParser) -> String {
    do throws(HTTPParseError) {
      let (head, next) = try parser.consume(bytes, from: 0, to: bytes.count)
      return "next \(next) \(head.map(text) ?? "no head")"
    } catch {
      return "refused: \(error)"
    }
  }

  private static func text(of head: RequestHead) -> String {
    let fields = head.fields.map { "\($0.name)=\($0.value)" }
    let target = head.target
    return "\(head.method) \(target.path) \(target.segments) \(target.query) \(target.authority ?? "-") \(head.version)"
      + " \(fields) \(head.body) \(head.isPersistent) \(head.expectsContinue) \(head.isPlain)"
  }
}
