// What a head determines about the connection and the body that follows it (RFC 9112 §6, §9; RFC 9110 §7.2, §10.1.1).
// If two parties read these fields differently, a request can be smuggled past one of them. So anything ambiguous is
// rejected.

import Synchronization
import Terms

/// A request's head, fully validated. One object shared by the connection and the request's handler.
final class RequestHead: Sendable {
  let method: HTTPMethod
  let target: RequestTarget
  let version: HTTPVersion
  let fields: HTTPFields
  let body: BodyLength
  /// Whether the client wants to keep the connection.
  let isPersistent: Bool
  let expectsContinue: Bool
  /// Whether it asks for the whole representation, unconditionally and uncompressed. Computed once, because polling
  /// clients send the same head again and again.
  let isPlain: Bool
  /// Whether the client has sent it more than once in a row.
  let isRepeated = Atomic(false)
  /// What its handler has made of it.
  let reading = Mutex<(any AnyObject & Sendable)?>(nil)

  init(
    method: HTTPMethod, target: RequestTarget, version: HTTPVersion, fields: HTTPFields
  ) throws(HTTPParseError) {
    try Self.checkHost(fields, version)
    var fields = fields
    // The host of an absolute target overrides the Host field (RFC 9112 §3.2.2).
    if let authority = target.authority { fields["Host"] = authority }
    (self.method, self.target, self.version, self.fields) = (method, target, version, fields)
    isPlain = Self.isPlain(fields)
    guard fields.count(of: "Content-Type") < 2 else { throw .malformed(.contentType) }
    body = try Self.bodyLength(fields, version)
    let options = fields.contains("Connection") ? fields.list("Connection") : []
    let closes = options.contains { $0.equalsIgnoringCase("close") }
    let keeps = version == .http11 || options.contains { $0.equalsIgnoringCase("keep-alive") }
    isPersistent = keeps && !closes
    expectsContinue = try Self.expectsContinue(fields, version)
  }

  /// Creates the head of a request without a socket. Its fields are not validated.
  init(method: HTTPMethod, target: RequestTarget, fields: HTTPFields) {
    (self.method, self.target, self.fields) = (method, target, fields)
    (version, body, isPersistent, expectsContinue) = (.http11, .none, true, false)
    isPlain = Self.isPlain(fields)
  }

  /// Creates a copy with another target, or another request line of the same version.
  init(_ other: RequestHead, method: HTTPMethod? = nil, target: RequestTarget) {
    self.method = method ?? other.method
    (version, fields, body) = (other.version, other.fields, other.body)
    (isPersistent, expectsContinue, isPlain) = (other.isPersistent, other.expectsContinue, other.isPlain)
    self.target = target
  }

  private static func isPlain(_ fields: HTTPFields) -> Bool {
    let selecting = [
      "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Accept-Encoding",
    ]
    return !selecting.contains(where: fields.contains)
  }

  private static func checkHost(_ fields: HTTPFields, _ version: HTTPVersion) throws(HTTPParseError) {
    let count = fields.count(of: "Host")
    if count == 0, version == .http10 { return }
    guard count == 1, let host = fields.bytes(of: "Host"), isHost(host) else { throw .malformed(.host) }
  }

  /// Whether a host is `reg-name`, `1.2.3.4`, or `[v6]`, with an optional decimal port (RFC 3986 §3.2.2).
  static func isHost(_ host: ArraySlice<UInt8>) -> Bool {
    var rest = host
    if rest.first == UInt8(ascii: "[") {
      guard let close = rest.firstIndex(of: UInt8(ascii: "]")) else { return false }
      guard IPv6Address.isValid(rest[(rest.startIndex + 1)..<close]) else { return false }
      rest = rest[(close + 1)...]
    } else {
      let end = rest.firstIndex(of: ASCII.colon) ?? rest.endIndex
      guard end > rest.startIndex, isRegisteredName(rest[..<end]) else { return false }
      rest = rest[end...]
    }
    guard rest.first == ASCII.colon else { return rest.isEmpty }
    guard let port = ASCII.decimal(rest.dropFirst()) else { return rest.count == 1 }
    return port.value <= 65535
  }

  /// `reg-name = *( unreserved / pct-encoded / sub-delims )`
  private static func isRegisteredName(_ name: ArraySlice<UInt8>) -> Bool {
    var index = name.startIndex
    while index < name.endIndex {
      if name[index] == ASCII.percent {
        guard index + 2 < name.endIndex, Hexadecimal.value(name[index + 1]) != nil,
          Hexadecimal.value(name[index + 2]) != nil
        else { return false }
        index += 3
      } else {
        guard ASCII.isLetterOrDigit(name[index]) || "-._~!$&'()*+,;=".utf8.contains(name[index]) else { return false }
        index += 1
      }
    }
    return true
  }

  /// Determines the body's length from `1*DIGIT`, which is decimal even with leading zeros (RFC 9110 §8.6).
  private static func bodyLength(_ fields: HTTPFields, _ version: HTTPVersion) throws(HTTPParseError) -> BodyLength {
    // A backend that maps "_" to "-", as CGI does, would find a second length in these.
    guard !fields.contains("Content_Length") else { throw .malformed(.contentLength) }
    guard !fields.contains("Transfer_Encoding") else { throw .malformed(.transferEncoding) }
    let isChunked = fields.contains("Transfer-Encoding")
    guard fields.contains("Content-Length") else {
      return isChunked ? try chunked(fields, version) : .none
    }
    guard !isChunked else { throw .malformed(.transferEncoding) }
    let lengths = fields.values(of: "Content-Length")
    guard lengths.count == 1, let length = ASCII.decimal(lengths[0].utf8), !length.overflow else {
      throw .malformed(.contentLength)
    }
    return length.value == 0 ? .none : .length(length.value)
  }

  private static func chunked(_ fields: HTTPFields, _ version: HTTPVersion) throws(HTTPParseError) -> BodyLength {
    let codings = fields.values(of: "Transfer-Encoding")
    guard version == .http11 else { throw .malformed(.transferEncoding) }
    if codings.count == 1, codings[0].equalsIgnoringCase("chunked") { return .chunked }
    // Several fields form one list (RFC 9110 §5.3). If chunked isn't last, the length is unknowable: 400 (§6.3, rule
    // 4). If it is last, after codings the server doesn't support: 501 (§6.1).
    let names = codings.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
      .map { $0.trimmingBlanks() }
    let isChunked = names.map { $0.equalsIgnoringCase("chunked") }
    guard isChunked.last == true, isChunked.count(where: { $0 }) == 1,
      names.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(ASCII.isTokenByte) })
    else { throw .malformed(.transferEncoding) }
    throw .unsupportedTransferCoding
  }

  /// HTTP/1.0 has no expectations, so one sent by a 1.0 client is ignored (RFC 9110 §10.1.1).
  private static func expectsContinue(_ fields: HTTPFields, _ version: HTTPVersion) throws(HTTPParseError) -> Bool {
    guard version == .http11, fields.contains("Expect") else { return false }
    let expectations = fields.list("Expect")
    guard expectations.allSatisfy({ $0.equalsIgnoringCase("100-continue") }) else { throw .unsupportedExpectation }
    return !expectations.isEmpty
  }
}
