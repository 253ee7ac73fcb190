import Testing

// The tables are numbered like the list of what the server must withstand in CONTRIBUTING.md: line 1 is Host, 2 the
// transfer coding, 3 Content-Length, 4 chunks, 6 the bytes of a head, 7 the request line.

/// A request that must be refused, with the line and the rule that it violates.
struct BadRequest: CustomTestStringConvertible, Sendable {
  var line: Int
  var rule: String
  var status: Int
  var wire: String
  var testDescription: String { (line == 0 ? "" : "line \(line): ") + "\(rule) is answered \(status)" }

  init(_ line: Int, _ rule: String, _ status: Int, _ wire: String) {
    (self.line, self.rule, self.status, self.wire) = (line, rule, status, wire)
  }

  init(_ line: Int, _ rule: String, _ wire: String) {
    self.init(line, rule, 400, wire)
  }

  /// A GET with these fields.
  static func get(_ line: Int, _ rule: String, _ status: Int = 400, fields: String) -> BadRequest {
    BadRequest(line, rule, status, "GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
  }

  static func host(_ rule: String, _ fields: String) -> BadRequest {
    BadRequest(1, "Host: \(rule)", "GET / HTTP/1.1\r\n\(fields)\r\n")
  }

  static func chunks(_ rule: String, _ chunks: String) -> BadRequest {
    BadRequest(4, rule, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)")
  }

  /// A request line followed by a valid Host.
  static func start(_ rule: String, _ text: String, _ status: Int = 400, line: Int = 7) -> BadRequest {
    BadRequest(line, rule, status, "\(text)\r\nHost: a\r\n\r\n")
  }

  /// The rows of all tables.
  static let all = hosts + codings + lengths + chunks + bytes + requestLines + expectations + tooLong

  private static let hosts: [BadRequest] = [
    host("none", ""), host("equal duplicates", "Host: a\r\nHost: a\r\n"),
    host("different duplicates", "Host: a\r\nhost: b\r\n"), host("empty", "Host:\r\n"), host("blank", "Host: \r\n"),
    host("userinfo", "Host: u@a\r\n"), host("a path", "Host: a/b\r\n"), host("a query", "Host: a?b\r\n"),
    host("a blank inside", "Host: a b\r\n"), host("a list", "Host: a, b\r\n"), host("a scheme", "Host: http://a\r\n"),
    host("letters for a port", "Host: a:b\r\n"), host("a port too large", "Host: a:65536\r\n"),
    host("two ports", "Host: a:1:2\r\n"), host("a signed port", "Host: a:+1\r\n"),
    host("a port alone", "Host: :80\r\n"), host("a broken escape", "Host: a%4\r\n"),
    host("an escape that is none", "Host: %zz\r\n"), host("a percent sign at the end", "Host: a%\r\n"),
    host("brackets inside of a name", "Host: a[]\r\n"), host("a backslash", "Host: a\\b\r\n"),
    host("an open bracket", "Host: [::1\r\n"), host("no address in brackets", "Host: [zz]\r\n"),
    host("empty brackets", "Host: []\r\n"), host("text behind the bracket", "Host: [::1]a\r\n"),
    host("two gaps in an IPv6 address", "Host: [1::2::3]\r\n"), host("three colons", "Host: [:::1]\r\n"),
    host("seven groups", "Host: [1:2:3:4:5:6:7]\r\n"), host("nine groups", "Host: [1:2:3:4:5:6:7:8:9]\r\n"),
    host("a gap beside eight groups", "Host: [1:2:3:4::5:6:7:8]\r\n"),
    host("a group of five digits", "Host: [::12345]\r\n"),
    host("an IPv4 address in front", "Host: [1.2.3.4::]\r\n"), host("a byte of 256", "Host: [::1.2.3.256]\r\n"),
    host("dots for colons", "Host: [1.2.3.4]\r\n"), host("a zone", "Host: [fe80::1%25eth0]\r\n"),
    BadRequest(1, "an absolute target without Host", "GET http://a/ HTTP/1.1\r\n\r\n"),
    start("userinfo in an absolute target", "GET http://u@a/ HTTP/1.1", line: 1),
    start("an absolute target without a host", "GET http:/// HTTP/1.1", line: 1),
    BadRequest(1, "a target of https", 421, "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
  ]

  private static let codings: [BadRequest] =
    [
      ("both lengths", 400, "Content-Length: 3\r\nTransfer-Encoding: chunked"),
      ("both lengths, the other way", 400, "Transfer-Encoding: chunked\r\nContent-Length: 3"),
      ("both lengths and another coding", 400, "Content-Length: 3\r\nTransfer-Encoding: identity"),
      ("chunked twice", 400, "Transfer-Encoding: chunked, chunked"),
      ("chunked in two fields", 400, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
      ("gzip and chunked in two fields", 501, "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked"),
      ("chunked and gzip in two fields", 400, "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip"),
      ("nothing and chunked in two fields", 400, "Transfer-Encoding:\r\nTransfer-Encoding: chunked"),
      ("identity", 400, "Transfer-Encoding: identity"), ("xchunked", 400, "Transfer-Encoding: xchunked"),
      ("gzip", 400, "Transfer-Encoding: gzip"), ("gzip, chunked", 501, "Transfer-Encoding: gzip, chunked"),
      ("chunked, chunked and gzip", 400, "Transfer-Encoding: chunked, gzip, chunked"),
      ("nothing and chunked", 400, "Transfer-Encoding: gzip,, chunked"),
      ("chunked, gzip", 400, "Transfer-Encoding: chunked, gzip"),
      ("a comma in front", 400, "Transfer-Encoding: , chunked"),
      ("a comma behind", 400, "Transfer-Encoding: chunked,"), ("quoted", 400, "Transfer-Encoding: \"chunked\""),
      ("empty", 400, "Transfer-Encoding:"), ("a vertical tab", 400, "Transfer-Encoding: \u{0B}chunked"),
      ("a form feed", 400, "Transfer-Encoding: \u{0C}chunked"), ("NUL behind", 400, "Transfer-Encoding: chunked\0"),
      ("a parameter", 400, "Transfer-Encoding: chunked;a=b"), ("folded", 400, "Transfer-Encoding:\r\n chunked"),
      ("a blank before the colon", 400, "Transfer-Encoding : chunked"),
      ("an underscore for the dash", 400, "Transfer_Encoding: chunked"),
    ].map { get(2, "Transfer-Encoding, \($0.0),", $0.1, fields: $0.2) } + [
      BadRequest(2, "chunked in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    ]

  private static let lengths: [BadRequest] =
    [
      "+1", "-1", "-0", "1 2", "0x1", "0o1", "1_0", "1, 1", "1,2", "", "1.0", "1e1", "a", "1;", "\"1\"",
      "9223372036854775808", "99999999999999999999", "999999999999999999999999999999",
    ].map { get(3, "Content-Length “\($0)”", fields: "Content-Length: \($0)") } + [
      get(3, "Content-Length twice, equal,", fields: "Content-Length: 1\r\nContent-Length: 1"),
      get(3, "Content-Length twice, different,", fields: "Content-Length: 1\r\ncontent-length: 2"),
      get(3, "Content_Length", fields: "Content-Length: 1\r\nContent_Length: 2"),
    ]

  private static let chunks: [BadRequest] = [
    chunks("no size", "\r\n\r\n"), chunks("a size that is no number", "g\r\n"), chunks("0x", "0x1\r\na\r\n0\r\n\r\n"),
    chunks("a signed size", "+1\r\na\r\n0\r\n\r\n"), chunks("a negative size", "-1\r\na\r\n0\r\n\r\n"),
    chunks("an underscore in a size", "1_0\r\n0123456789abcdef\r\n0\r\n\r\n"),
    chunks("17 digits", "00000000000000001\r\na\r\n0\r\n\r\n"), chunks("overflow", "ffffffffffffffff\r\na"),
    chunks("overflow by one", "8000000000000000\r\na"), chunks("a bare LF behind the size", "1\na\r\n0\r\n\r\n"),
    chunks("a bare CR behind the size", "1\ra\r\n0\r\n\r\n"), chunks("a blank behind the size", "1 \r\na\r\n0\r\n\r\n"),
    chunks("a blank before the size", " 1\r\na\r\n0\r\n\r\n"), chunks("data too long", "1\r\nab\r\n0\r\n\r\n"),
    chunks("data without CRLF", "1\r\na0\r\n\r\n"), chunks("data and a bare LF", "1\r\na\n0\r\n\r\n"),
    chunks("data and a bare CR", "1\r\na\r0\r\n\r\n"),
    chunks("an extension too long", "1;\(String(repeating: "e", count: 257))\r\n"),
    chunks("an extension without a name", "1;\r\na\r\n0\r\n\r\n"),
    chunks("an empty extension", "1;;a\r\na\r\n0\r\n\r\n"),
    chunks("an extension that is no token", "1;a[=b\r\na\r\n0\r\n\r\n"),
    chunks("an extension without its value", "1;a=\r\na\r\n0\r\n\r\n"),
    chunks("an extension's open quote", "1;a=\"b\r\na\r\n0\r\n\r\n"),
    chunks("text behind an extension's quote", "1;a=\"b\"c\r\na\r\n0\r\n\r\n"),
    chunks("a blank behind an extension", "1;a \r\na\r\n0\r\n\r\n"),
    chunks("a bare LF in an extension", "1;a\nb\r\na\r\n0\r\n\r\n"),
    chunks("a bare CR in an extension", "1;a\rb\r\na\r\n0\r\n\r\n"),
    chunks("NUL in an extension", "1;a\0\r\na\r\n0\r\n\r\n"),
    chunks("trailers too long", "0\r\na: \(String(repeating: "t", count: 8192))\r\n\r\n"),
    chunks("a trailer without a colon", "0\r\nab\r\n\r\n"), chunks("a folded trailer", "0\r\na: b\r\n c\r\n\r\n"),
    chunks("a bare LF for the last line", "0\r\n\n"), chunks("a bare LF behind a trailer", "0\r\na: b\n\r\n"),
    chunks("a control byte in a trailer", "0\r\na: \u{1}\r\n\r\n"),
    chunks("a blank before a trailer's colon", "0\r\na : b\r\n\r\n"),
  ]

  private static let bytes: [BadRequest] =
    [
      ("NUL in a value", "X: a\0b"), ("a bare CR in a value", "X: a\rb"), ("a bare LF after a field", "X: a\nY: b"),
      ("DEL in a value", "X: a\u{7F}b"), ("a control byte in a value", "X: a\u{8}b"),
      ("a blank before the colon", "X : a"), ("a tab before the colon", "X\t: a"), ("folding by a blank", "X: a\r\n b"),
      ("folding by a tab", "X: a\r\n\tb"), ("an empty name", ": a"), ("a name that is no token", "X(: a"),
      ("a name of two words", "X Y: a"), ("NUL in a name", "X\0: a"), ("no colon", "Xa"),
      ("a name beyond ASCII", "Xé: a"),
      ("a leading blank", " X: a"), ("Content-Type twice", "Content-Type: a/b\r\nContent-Type: a/c"),
    ].map { get(6, $0.0, fields: $0.1) } + [
      BadRequest(6, "a leading blank before all fields", "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n"),
      BadRequest(6, "a bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"),
      BadRequest(6, "a bare CR after the request line", "GET / HTTP/1.1\rHost: a\r\n\r\n"),
      start("NUL in the target", "GET /\0 HTTP/1.1", line: 6),
      start("a bare CR in the request line", "GET /\r HTTP/1.1", line: 6),
      start("a byte beyond ASCII in the target", "GET /é HTTP/1.1", line: 6),
      start("%00 in the path", "GET /%00 HTTP/1.1", line: 6),
      start("%00 in the query", "GET /?a=%00 HTTP/1.1", line: 6),
      start("a broken escape", "GET /%zz HTTP/1.1", line: 6), start("an escape cut short", "GET /%4 HTTP/1.1", line: 6),
      start("an escape that is not UTF-8", "GET /%ff HTTP/1.1", line: 6),
      start("an overlong escape", "GET /%c0%af HTTP/1.1", line: 6),
    ]

  private static let requestLines: [BadRequest] = [
    start("a tab for a blank", "GET\t/ HTTP/1.1"), start("two blanks", "GET  / HTTP/1.1"),
    start("a blank in the target", "GET /a b HTTP/1.1"), start("a blank at the end", "GET / HTTP/1.1 "),
    start("a blank in front", " GET / HTTP/1.1"), start("no version", "GET /"), start("no target", "GET HTTP/1.1"),
    start("a lower-case version", "GET / http/1.1"), start("a version of one digit", "GET / HTTP/1"),
    start("a version of three digits", "GET / HTTP/1.10"), start("leading zeros in the version", "GET / HTTP/01.01"),
    start("a blank in the version", "GET / HTTP/ 1.1"), start("a comma in the version", "GET / HTTP/1,1"),
    start("a method that is no token", "G(T / HTTP/1.1"), start("a target without a slash", "GET a HTTP/1.1"),
    start("an asterisk for GET", "GET * HTTP/1.1"), start("a fragment", "GET /#a HTTP/1.1"),
    start("a backslash in the path", "GET /a\\b HTTP/1.1"), start("another scheme", "GET ftp://a/ HTTP/1.1"),
    start("HTTP/9.9", "GET / HTTP/9.9", 505), start("HTTP/0.9", "GET / HTTP/0.9", 505),
    BadRequest(7, "the preface of HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    start("an unknown method", "BREW / HTTP/1.1", 501), start("a lower-case method", "get / HTTP/1.1", 501),
    BadRequest(7, "CONNECT", 501, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"),
    BadRequest(7, "TLS", "\u{16}\u{3}\u{1}\u{2}\0\u{1}\n\r\n"),
    BadRequest(7, "a second empty line in front", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
  ]

  private static let expectations: [BadRequest] = [
    get(9, "an unknown expectation", 417, fields: "Expect: tea"),
    get(9, "100-continue with company", 417, fields: "Expect: 100-continue, tea"),
  ]

  /// The limits on a head. These rows aren't on the list, so their line is 0.
  private static let tooLong: [BadRequest] = [
    start("limit: a request line too long", "GET /\(String(repeating: "a", count: 8192)) HTTP/1.1", 414, line: 0),
    start("limit: a method too long", "\(String(repeating: "A", count: 9000)) / HTTP/1.1", line: 0),
    get(0, "limit: a section too long", 431, fields: "X: \(String(repeating: "a", count: 16 * 1024))"),
    get(0, "limit: too many fields", 431, fields: (0..<100).map { "X\($0): a" }.joined(separator: "\r\n")),
  ]
}
