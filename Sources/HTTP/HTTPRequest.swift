/// A request: its head, and the body to be read from it. An object, because it is handed through every responder.
public final class HTTPRequest: Sendable {
  /// One of the known methods.
  public let method: HTTPMethod
  /// Path and query, decoded once.
  public let target: RequestTarget
  /// 1.0 or 1.1.
  public let version: HTTPVersion
  /// The header fields as they came.
  public let fields: HTTPFields
  /// The content.
  public let body: RequestBody
  /// The client's address and port, `127.0.0.1:50312`; `in-process` where there is no socket.
  public let peer: String
  /// The caller's `X-Request-Id` where it was sane, a new one otherwise. Every response carries it.
  public let id: String

  init(head: RequestHead, body: RequestBody, peer: String, id: String) {
    (method, target, version, fields) = (head.method, head.target, head.version, head.fields)
    (self.body, self.peer, self.id) = (body, peer, id)
  }

  /// A request without a socket, for tests of handlers: `target` is checked as one from the wire is.
  public init(
    method: HTTPMethod, target: String, fields: HTTPFields = [:], body: [UInt8] = []
  ) throws(HTTPParseError) {
    self.method = method
    self.target = try RequestTarget(parsing: Array(target.utf8)[...], method: method)
    self.version = .http11
    self.fields = fields
    self.body = body.isEmpty ? .none : RequestBody(body)
    self.peer = "in-process"
    self.id = RequestIdentifier.callers(fields) ?? RequestIdentifier.make(UInt64.random(in: .min ... .max))
  }
}

/// The `X-Request-Id` of requests.
enum RequestIdentifier {
  /// The caller's own, where it is 1 to 128 harmless characters: it goes into logs and back into a header.
  static func callers(_ fields: HTTPFields) -> String? {
    guard fields.contains("X-Request-Id"), let id = fields["X-Request-Id"] else { return nil }
    let isSane =
      (1...128).contains(id.utf8.count)
      && id.utf8.allSatisfy { ASCII.isLetterOrDigit($0) || "-._~:+/=".utf8.contains($0) }
    return isSane ? id : nil
  }

  /// 13 characters of base 32: short enough for a String that needs no allocation.
  static func make(_ number: UInt64) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(13)
    var rest = number
    for _ in 0..<13 {
      let digit = UInt8(rest & 31)
      bytes.append(digit < 10 ? digit + 0x30 : digit + 0x57)
      rest >>= 5
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
