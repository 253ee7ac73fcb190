import Testing

@testable import HTTP

/// A request that must be refused, by the rule it breaks.
struct BadRequest: CustomTestStringConvertible, Sendable {
  var rule: String
  var status: Int
  var wire: String
  var testDescription: String { rule }

  init(_ rule: String, _ status: Int, _ wire: String) {
    (self.rule, self.status, self.wire) = (rule, status, wire)
  }

  init(_ rule: String, _ wire: String) {
    self.init(rule, 400, wire)
  }

  static func get(_ rule: String, _ status: Int = 400, fields: String) -> BadRequest {
    BadRequest(rule, status, "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
  }

  static func chunks(_ rule: String, _ chunks: String) -> BadRequest {
    BadRequest(rule, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)")
  }
}

private let good = "GET /good HTTP/1.1\r\nHost: a\r\n\r\n"

private let hosts: [BadRequest] = [
  ("none", ""), ("equal duplicates", "Host: a\r\nHost: a\r\n"), ("different duplicates", "Host: a\r\nhost: b\r\n"),
  ("empty", "Host:\r\n"), ("userinfo", "Host: u@a\r\n"), ("path", "Host: a/b\r\n"), ("blank inside", "Host: a b\r\n"),
  ("letters for a port", "Host: a:b\r\n"), ("port too large", "Host: a:65536\r\n"), ("two ports", "Host: a:1:2\r\n"),
  ("open bracket", "Host: [::1\r\n"), ("no address in brackets", "Host: [zz]\r\n"), ("a list", "Host: a, b\r\n"),
  ("text behind the bracket", "Host: [::1]a\r\n"), ("signed port", "Host: a:+1\r\n"),
].map { BadRequest("Host: \($0.0)", "GET / HTTP/1.1\r\n\($0.1)\r\n") }

private let lengths: [BadRequest] =
  [
    "+1", "-1", "1 2", "0x1", "1_0", "1, 1", "", "1.0", "1e1", "a", "1;", "\"1\"",
  ].map { .get("Content-Length \($0)", fields: "Content-Length: \($0)") } + [
    .get("Content-Length twice, equal", fields: "Content-Length: 1\r\nContent-Length: 1"),
    .get("Content-Length twice, different", fields: "Content-Length: 1\r\ncontent-length: 2"),
    .get("Content-Length too large to count", 413, fields: "Content-Length: 9223372036854775808"),
    .get("Content-Length of 30 digits", 413, fields: "Content-Length: 999999999999999999999999999999"),
  ]

private let codings: [BadRequest] = [
  .get("both lengths", fields: "Content-Length: 3\r\nTransfer-Encoding: chunked"),
  .get("both lengths, the other way", fields: "Transfer-Encoding: chunked\r\nContent-Length: 3"),
  BadRequest("chunked in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
  .get("chunked twice", fields: "Transfer-Encoding: chunked, chunked"),
  .get("chunked in two fields", fields: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
  .get("identity", 501, fields: "Transfer-Encoding: identity"),
  .get("xchunked", 501, fields: "Transfer-Encoding: xchunked"),
  .get("gzip", 501, fields: "Transfer-Encoding: gzip"),
  .get("gzip, chunked", fields: "Transfer-Encoding: gzip, chunked"),
  .get("quoted", fields: "Transfer-Encoding: \"chunked\""),
  .get("empty", fields: "Transfer-Encoding:"),
  .get("a control byte before chunked", fields: "Transfer-Encoding: \u{0B}chunked"),
  .get("a parameter", fields: "Transfer-Encoding: chunked;a=b"),
]

private let chunks: [BadRequest] = [
  .chunks("no size", "\r\n\r\n"), .chunks("a size that is no number", "g\r\n"), .chunks("0x", "0x1\r\na\r\n0\r\n\r\n"),
  .chunks("a signed size", "+1\r\na\r\n0\r\n\r\n"), .chunks("a negative size", "-1\r\na\r\n0\r\n\r\n"),
  .chunks("17 digits", "00000000000000001\r\na\r\n0\r\n\r\n"),
  .chunks("overflow", "ffffffffffffffff\r\na"), .chunks("overflow by one", "8000000000000000\r\na"),
  .chunks("bare LF behind the size", "1\na\r\n0\r\n\r\n"), .chunks("bare CR behind the size", "1\ra\r\n0\r\n\r\n"),
  .chunks("a blank behind the size", "1 \r\na\r\n0\r\n\r\n"),
  .chunks("a blank before the size", " 1\r\na\r\n0\r\n\r\n"),
  .chunks("data too long", "1\r\nab\r\n0\r\n\r\n"), .chunks("data without CRLF", "1\r\na0\r\n\r\n"),
  .chunks("data and a bare LF", "1\r\na\n0\r\n\r\n"),
  .chunks("extension too long", "1;\(String(repeating: "e", count: 257))\r\n"),
  .chunks("a bare LF in an extension", "1;a\nb\r\na\r\n0\r\n\r\n"),
  .chunks("NUL in an extension", "1;a\0\r\na\r\n0\r\n\r\n"),
  .chunks("trailers too long", "0\r\na: \(String(repeating: "t", count: 8192))\r\n\r\n"),
  .chunks("a trailer without a colon", "0\r\nab\r\n\r\n"), .chunks("a folded trailer", "0\r\na: b\r\n c\r\n\r\n"),
  .chunks("a bare LF for the last line", "0\r\n\n"), .chunks("a control byte in a trailer", "0\r\na: \u{1}\r\n\r\n"),
]

private let bytes: [BadRequest] =
  [
    ("NUL in a value", "X: a\0b"), ("a bare CR in a value", "X: a\rb"), ("a bare LF after a field", "X: a\nY: b"),
    ("DEL in a value", "X: a\u{7F}b"), ("a control byte in a value", "X: a\u{8}b"),
    ("a blank before the colon", "X : a"),
    ("a tab before the colon", "X\t: a"), ("folding by a blank", "X: a\r\n b"), ("folding by a tab", "X: a\r\n\tb"),
    ("an empty name", ": a"), ("a name that is no token", "X(: a"), ("a name of two words", "X Y: a"),
    ("no colon", "Xa"), ("a name beyond ASCII", "Xé: a"), ("a leading blank", " X: a"),
  ].map { .get($0.0, fields: $0.1) }

private let requestLines: [BadRequest] = [
  BadRequest("NUL in the target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"),
  BadRequest("a bare CR in the request line", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a tab for a blank", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a blank at the end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
  BadRequest("a blank in front", " GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("no version", "GET /\r\nHost: a\r\n\r\n"),
  BadRequest("a lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a version of one digit", "GET / HTTP/1\r\nHost: a\r\n\r\n"),
  BadRequest("a version of three digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
  BadRequest("a method that is no token", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a target without a slash", "GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("an asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a fragment", "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("%00 in the path", "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("%00 in the query", "GET /?a=%00 HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a broken escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("an escape cut short", "GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("an escape that is not UTF-8", "GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("userinfo in an absolute target", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("an absolute target without Host", "GET http://a/ HTTP/1.1\r\n\r\n"),
  BadRequest("another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("two empty lines in front", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  BadRequest("HTTP/9.9", 505, "GET / HTTP/9.9\r\nHost: a\r\n\r\n"),
  BadRequest("HTTP/0.9", 505, "GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
  BadRequest("an unknown method", 501, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("a lower-case method", 501, "get / HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("CONNECT", 501, "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
  BadRequest("TLS", 400, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\n\r\n"),
  BadRequest("an unknown expectation", 417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n"),
  BadRequest("a request line too long", 414, "GET /\(String(repeating: "a", count: 8192)) HTTP/1.1\r\n\r\n"),
]

private let sections: [BadRequest] = [
  .get("a section too long", 431, fields: "X: \(String(repeating: "a", count: 16 * 1024))"),
  .get(
    "too many fields", 431, fields: (0..<100).map { "X\($0): a" }.joined(separator: "\r\n")),
]

@Suite struct FramingTests {
  @Test(arguments: hosts + lengths + codings + chunks + bytes + requestLines + sections)
  func aRequestThatBreaksARuleIsRefused(_ bad: BadRequest) {
    let reader = WireReader(bad.wire)
    #expect(reader.refusal == bad.status)
    #expect(reader.requests.isEmpty)
  }

  @Test(arguments: hosts + lengths + codings + chunks + bytes + requestLines)
  func itIsRefusedHoweverItIsSplit(_ bad: BadRequest) {
    // Long ones are split around their ends only: the middle is all alike.
    guard bad.wire.utf8.count < 1000 else { return }
    for outcome in WireReader.outcomesOfAllSplits(bad.wire) {
      #expect(outcome.refusal == bad.status)
      #expect(outcome.requests.isEmpty)
    }
  }

  @Test(arguments: hosts + lengths + codings + chunks + bytes + requestLines + sections)
  func itIsRefusedBehindAGoodRequestAndNothingAfterItIsServed(_ bad: BadRequest) {
    guard bad.rule != "two empty lines in front" else { return }
    let reader = WireReader(good + bad.wire + good)
    #expect(reader.refusal == bad.status)
    #expect(reader.requests.map(\.path) == ["/good"])
  }

  @Test(arguments: [
    "Host: a", "Host: a:80", "Host: a:", "Host: [::1]", "Host: [::1]:8080", "host:a", "HOST: \t a.b-c \t",
    "Host: 127.0.0.1:1", "Host: [::ffff:127.0.0.1]",
  ])
  func aValidHostIsAccepted(_ field: String) {
    #expect(WireReader("GET / HTTP/1.1\r\n\(field)\r\n\r\n").requests.count == 1)
  }

  @Test(arguments: [
    ("a length", "Content-Length: 3\r\n\r\nabc", "abc"),
    ("leading zeros", "Content-Length: 003\r\n\r\nabc", "abc"),
    ("no content", "Content-Length: 0\r\n\r\n", ""),
    ("chunks", "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", "abc"),
    ("the coding in capitals, padded", "Transfer-Encoding: \t CHUNKED \r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"),
    ("16 digits", "Transfer-Encoding: chunked\r\n\r\n0000000000000003\r\nabc\r\n0\r\n\r\n", "abc"),
    (
      "upper and lower hex", "Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
      "01234567890123456789"
    ),
    ("extensions", "Transfer-Encoding: chunked\r\n\r\n3;a=\"b c\"\r\nabc\r\n0 ;x\r\n\r\n", "abc"),
    ("trailers", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nHost: evil\r\nX: y\r\n\r\n", "abc"),
    ("many last zeros", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n000\r\n\r\n", "abc"),
  ])
  func aBodyEndsWhereItSaysAndTheNextRequestFollows(_ name: String, _ rest: String, _ body: String) {
    let wire = "POST /p HTTP/1.1\r\nHost: a\r\n\(rest)\(good)"
    let expected = [
      WireReader.Request(method: "POST", path: "/p", body: body), .init(method: "GET", path: "/good", body: ""),
    ]
    for outcome in WireReader.outcomesOfAllSplits(wire) {
      #expect(outcome.requests == expected)
      #expect(outcome.refusal == nil)
    }
  }

  @Test(arguments: [
    "Content-Length: 3\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n3\r\nab",
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
  ])
  func aBodyCutShortIsNotComplete(_ rest: String) {
    let reader = WireReader("POST / HTTP/1.1\r\nHost: a\r\n\(rest)")
    #expect(reader.requests.isEmpty)
    #expect(reader.isIncomplete)
  }

  @Test(arguments: [
    "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b:80/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET HTTP://[::1] HTTP/1.1\r\nHost: a\r\n\r\n", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX:\r\nY: é \t\r\n\r\n",
  ])
  func unusualButValidRequestsAreAccepted(_ wire: String) {
    for outcome in WireReader.outcomesOfAllSplits(wire + good) {
      #expect(outcome.refusal == nil)
      #expect(outcome.requests.count == 2)
    }
  }

  @Test func theLimitsThemselvesAreAllowed() {
    let target = "/" + String(repeating: "a", count: 8192 - "GET / HTTP/1.1".utf8.count)
    #expect(WireReader("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n").requests.count == 1)
    let fields = (0..<99).map { "X\($0): a\r\n" }.joined()
    #expect(WireReader("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n").requests.count == 1)
  }

  @Test func aLineThatNeverEndsIsRefusedBeforeItIsKept() {
    let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 1000)
    #expect(WireReader(Array(repeating: piece, count: 9)).refusal == 414)
    let head = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8)
    #expect(WireReader([head] + Array(repeating: piece, count: 17)).refusal == 431)
  }
}
