import Foundation
import Testing

/// A received answer, with field names in lower case.
struct Answer {
  let status: Int
  let fields: [(String, String)]
  let body: [UInt8]

  subscript(_ name: String) -> String? {
    let values = fields.filter { $0.0 == name.lowercased() }.map(\.1)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  /// The body, which must be JSON.
  var json: JSON {
    do { return try JSON(body) } catch {
      Issue.record("\(status) is no JSON: \(String(decoding: body.prefix(200), as: UTF8.self))")
      return .absent
    }
  }

  var text: String { String(decoding: body, as: UTF8.self) }
}

/// A plain HTTP client with one persistent connection. Every answer it gets is checked against openapi.yaml.
final class HTTPClient {
  enum Body {
    case none
    case bytes([UInt8])
    case json(String)
    /// Generated pieces: with Content-Length if `length` is given, otherwise chunked.
    case pieces(length: Int?, next: () -> [UInt8]?)
  }

  let port: UInt16
  /// False if a test requests something that openapi.yaml doesn't describe.
  var followsContract = true
  private var wire: Wire?

  /// The last number of the loopback address it sends from; each number is a different client.
  private let source: UInt32

  init(port: UInt16, source: UInt32 = 1) { (self.port, self.source) = (port, source) }

  func get(_ target: String, _ fields: [String: String] = [:]) throws -> Answer {
    try send("GET", target, fields)
  }

  func post(_ target: String, json: String, _ fields: [String: String] = [:]) throws -> Answer {
    try send("POST", target, fields, .json(json))
  }

  func delete(_ target: String) throws -> Answer { try send("DELETE", target) }

  /// Sends a request and returns its answer; reopens a connection that was closed meanwhile.
  func send(
    _ method: String, _ target: String, _ fields: [String: String] = [:], _ body: Body = .none
  ) throws -> Answer {
    // Only idempotent requests may be sent twice; others get a fresh connection.
    if method != "GET" && method != "HEAD" { wire = nil }
    let answer: Answer
    if let wire, !wire.hasInput, let kept = try? exchange(on: wire, method, target, fields, body) {
      answer = kept
    } else {
      let fresh = try Wire(port: port, source: source)
      wire = fresh
      answer = try exchange(on: fresh, method, target, fields, body)
    }
    if answer["connection"]?.lowercased() == "close" { wire = nil }
    if followsContract { expectContract(method, target, answer) }
    return answer
  }

  private func exchange(
    on wire: Wire, _ method: String, _ target: String, _ fields: [String: String], _ body: Body
  ) throws -> Answer {
    var fields = fields
    fields["Host"] = fields["Host"] ?? "127.0.0.1:\(port)"
    switch body {
    case .none: break
    case .bytes(let bytes): fields["Content-Length"] = "\(bytes.count)"
    case .json(let text):
      fields["Content-Length"] = "\(text.utf8.count)"
      fields["Content-Type"] = fields["Content-Type"] ?? "application/json"
    case .pieces(let length?, _): fields["Content-Length"] = "\(length)"
    case .pieces(nil, _): fields["Transfer-Encoding"] = "chunked"
    }
    let head = fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)\r\n" }.joined()
    wire.send("\(method) \(target) HTTP/1.1\r\n\(head)\r\n")
    switch body {
    case .none: break
    case .bytes(let bytes): wire.send(bytes)
    case .json(let text): wire.send(text)
    case .pieces(let length, let next): send(next, chunked: length == nil, on: wire)
    }
    return try wire.answer(to: method)
  }

  /// Stops if the service answers early, because the rest won't be read.
  private func send(_ next: () -> [UInt8]?, chunked: Bool, on wire: Wire) {
    while let piece = next() {
      guard !wire.hasInput else { return }
      if chunked { wire.send(String(piece.count, radix: 16) + "\r\n") }
      guard wire.send(piece) else { return }
      if chunked { wire.send("\r\n") }
    }
    if chunked { wire.send("0\r\n\r\n") }
  }
}
