/// A response. The server itself adds the length, transfer coding, `Date`, `Connection`, and `X-Request-Id`.
package struct HTTPResponse: Sendable {
  /// The status code and reason phrase.
  package var status: HTTPStatus
  /// The header fields. `Content-Length` and `Transfer-Encoding` set here are dropped; `Connection: close` closes the
  /// connection.
  package var fields: HTTPFields
  /// The content. Not sent for HEAD, 204, and 304.
  package var body: ResponseBody
  /// The compressed forms of the content, if they are kept.
  var forms: CodedForms?

  /// Creates a response from its parts.
  package init(_ status: HTTPStatus, fields: HTTPFields = [:], body: ResponseBody = .empty) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  /// Whether the handler set `Connection: close`.
  var asksToClose: Bool {
    fields.contains("Connection") && fields.list("Connection").contains { $0.equalsIgnoringCase("close") }
  }
}

/// The content of a response.
package enum ResponseBody: Sendable {
  /// No content: `Content-Length: 0`.
  case empty
  /// Content in memory.
  case bytes([UInt8])
  /// Content of a file, sent with `sendfile` and never copied into the process.
  case file(FileContent)
  /// Several pieces in a row, as for multipart/byteranges. None of them may be a stream.
  indirect case sequence([ResponseBody])
  /// Content produced piece by piece, only as fast as the client reads it; nil ends it. If `length` is nil it is sent
  /// in chunks; otherwise exactly `length` bytes must be produced. An error breaks the connection, so that a client
  /// can't take a truncated answer for a complete one. `next` runs in the handler's Task, which is canceled when the
  /// client disconnects.
  case stream(length: Int64?, next: @Sendable () async throws -> [UInt8]?)

  /// The content's length, or nil if it isn't known in advance.
  package var length: Int64? {
    switch self {
    case .empty: 0
    case .bytes(let bytes): Int64(bytes.count)
    case .file(let file): file.length
    case .sequence(let bodies): bodies.reduce(0) { $0 + ($1.length ?? 0) }
    case .stream(let length, _): length
    }
  }

  /// Returns the whole content in memory, for tests without a socket. Reads files with blocking calls.
  package func collect() async throws -> [UInt8] {
    switch self {
    case .empty: return []
    case .bytes(let bytes): return bytes
    case .file(let file): return try file.read(0..<file.length)
    case .sequence(let bodies):
      var all: [UInt8] = []
      for body in bodies { all.append(contentsOf: try await body.collect()) }
      return all
    case .stream(_, let next):
      var all: [UInt8] = []
      while let piece = try await next() { all.append(contentsOf: piece) }
      return all
    }
  }
}

extension ResponseBody {
  /// The content if it is available without blocking, otherwise nil.
  package var bytesAtHand: [UInt8]? {
    switch self {
    case .bytes(let bytes): bytes
    case .empty, .file, .sequence, .stream: nil
    }
  }
}

/// A response, or the work that produces one. Most of what clients poll for is available immediately and needs no Task,
/// which would double the cost of the exchange.
package enum HTTPAnswer: Sendable {
  /// A response that is available now.
  case now(HTTPResponse)
  /// Work that produces the response, run in a Task that is canceled when the client disconnects.
  case later(@Sendable () async throws -> HTTPResponse)

  /// The response; waits for it if necessary.
  package var response: HTTPResponse {
    get async throws {
      switch self {
      case .now(let response): response
      case .later(let work): try await work()
      }
    }
  }
}

/// Answers requests: a router, or a responder in front of one.
package protocol HTTPResponder: Sendable {
  /// Responds to a request. Called on the connection's loop, where the returned work runs too; anything that blocks
  /// belongs on another queue. An error thrown by the work becomes a 500, so a router handles its handlers' errors
  /// itself.
  func respond(to request: HTTPRequest) -> HTTPAnswer
}
