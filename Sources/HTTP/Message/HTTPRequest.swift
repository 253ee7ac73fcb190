/// A request: its head and a body to read. It is a class because it is passed through every responder.
package final class HTTPRequest: Sendable {
  /// The content.
  package let body: RequestBody
  /// The client's address and port, such as `127.0.0.1:50312`; `in-process` if there is no socket.
  package let peer: String
  /// The caller's `X-Request-Id` if it is acceptable, otherwise a new one. Every response carries it.
  package let id: String
  /// What responders note about the request.
  package let notes: RequestNotes
  private let head: RequestHead

  /// One of the known methods.
  package var method: HTTPMethod { head.method }
  /// The path and query, decoded once.
  package var target: RequestTarget { head.target }
  /// 1.0 or 1.1.
  package var version: HTTPVersion { head.version }
  /// The header fields as received.
  package var fields: HTTPFields { head.fields }

  /// Whether the request asks for the whole representation, unconditionally and uncompressed.
  var isPlain: Bool { head.isPlain }

  /// Returns what `read` makes of the target and the fields, which nothing else may influence. If the client sends the
  /// same head again and again, as one that polls does, `read` is called once. A handler remembers one value.
  package func reading<Value: AnyObject & Sendable>(_ read: () throws -> Value) rethrows -> Value {
    guard head.isRepeated.load(ordering: .relaxed) else { return try read() }
    if let known = head.reading.withLock({ $0 }) as? Value { return known }
    let value = try read()
    head.reading.withLock { $0 = value }
    return value
  }

  init(
    head: RequestHead, body: RequestBody, peer: String, id: String, notes: RequestNotes = RequestNotes()
  ) {
    (self.head, self.body, self.peer, self.id, self.notes) = (head, body, peer, id, notes)
  }

  /// Creates a copy of `other` with another target.
  convenience init(retargeting other: HTTPRequest, to target: RequestTarget) {
    self.init(
      head: RequestHead(other.head, target: target), body: other.body, peer: other.peer, id: other.id,
      notes: other.notes)
  }

  /// Creates a request without a socket, for tests of handlers. `target` is validated like one from the wire; `fields`
  /// are not. `peer`: the client's address and port.
  package convenience init(
    method: HTTPMethod, target: String, fields: HTTPFields = [:], body: [UInt8] = [], peer: String = "in-process"
  ) throws(HTTPParseError) {
    let target = try RequestTarget(parsing: Array(target.utf8)[...], method: method)
    let head = RequestHead(method: method, target: target, fields: fields)
    self.init(
      head: head, body: body.isEmpty ? .none : RequestBody(body), peer: peer,
      id: RequestIdentifier.callers(fields) ?? RequestIdentifier.make(UInt64.random(in: .min ... .max)))
  }
}
