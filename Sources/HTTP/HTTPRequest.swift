/// A request: its head, and the body to be read from it. An object, because it is handed through every responder.
public final class HTTPRequest: Sendable {
  /// The content.
  public let body: RequestBody
  /// The client's address and port, `127.0.0.1:50312`; `in-process` where there is no socket.
  public let peer: String
  /// The caller's `X-Request-Id` where it was sane, a new one otherwise. Every response carries it.
  public let id: String
  private let head: RequestHead

  /// One of the known methods.
  public var method: HTTPMethod { head.method }
  /// Path and query, decoded once.
  public var target: RequestTarget { head.target }
  /// 1.0 or 1.1.
  public var version: HTTPVersion { head.version }
  /// The header fields as they came.
  public var fields: HTTPFields { head.fields }

  /// Whether the request asks for a representation as it is: without conditions, whole, uncoded.
  var isPlain: Bool { head.isPlain }

  init(head: RequestHead, body: RequestBody, peer: String, id: String) {
    (self.head, self.body, self.peer, self.id) = (head, body, peer, id)
  }

  /// The request `other`, for another target.
  convenience init(retargeting other: HTTPRequest, to target: RequestTarget) {
    self.init(head: RequestHead(other.head, target: target), body: other.body, peer: other.peer, id: other.id)
  }

  /// A request without a socket, for tests of handlers: `target` is checked as one from the wire is,
  /// `fields` are taken as they are. `peer`: the client's address and port.
  public convenience init(
    method: HTTPMethod, target: String, fields: HTTPFields = [:], body: [UInt8] = [], peer: String = "in-process"
  ) throws(HTTPParseError) {
    let target = try RequestTarget(parsing: Array(target.utf8)[...], method: method)
    let head = RequestHead(method: method, target: target, fields: fields)
    self.init(
      head: head, body: body.isEmpty ? .none : RequestBody(body), peer: peer,
      id: RequestIdentifier.callers(fields) ?? RequestIdentifier.make(UInt64.random(in: .min ... .max)))
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
    unsafe String(unsafeUninitializedCapacity: 13) { bytes in
      var rest = number
      for index in 0..<13 {
        let digit = UInt8(rest & 31)
        unsafe bytes[index] = digit < 10 ? digit + 0x30 : digit + 0x57
        rest >>= 5
      }
      return 13
    }
  }
}
