/// A response. Length, transfer coding, `Date`, `Connection` and `X-Request-Id` are the server's business.
package struct HTTPResponse: Sendable {
  /// Three digits and a phrase.
  package var status: HTTPStatus
  /// What goes in front of the content. `Content-Length` and `Transfer-Encoding` set here are dropped;
  /// `Connection: close` closes.
  package var fields: HTTPFields
  /// The content; not sent for HEAD, 204 and 304.
  package var body: ResponseBody

  /// A response of these parts.
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
  /// In memory.
  case bytes([UInt8])
  /// Of a file, by `sendfile`: never copied into the process.
  case file(FileContent)
  /// Several in a row, as for multipart/byteranges; none of them a stream.
  indirect case sequence([ResponseBody])
  /// Pulled piece by piece, only as fast as the client takes it; nil is the end. Sent in chunks where `length` is nil,
  /// otherwise exactly `length` bytes must come. An error breaks the connection off, so that a cut answer cannot be
  /// taken for a whole one. `next` runs in the handler's Task, which is cancelled when the client goes away.
  case stream(length: Int64?, next: @Sendable () async throws -> [UInt8]?)

  /// The length where it is known beforehand.
  package var length: Int64? {
    switch self {
    case .empty: 0
    case .bytes(let bytes): Int64(bytes.count)
    case .file(let file): file.length
    case .sequence(let bodies): bodies.reduce(0) { $0 + ($1.length ?? 0) }
    case .stream(let length, _): length
    }
  }

  /// The whole content in memory: for tests, which have no socket. Reads files with blocking calls.
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
  /// The content where it can be had at once.
  package var bytesAtHand: [UInt8]? {
    switch self {
    case .bytes(let bytes): bytes
    case .file(let file) where file.isInMemory: try? file.read(0..<file.length)
    case .empty, .file, .sequence, .stream: nil
    }
  }
}

/// A response, or the work that leads to one. Most of what is asked for again and again is known: told at once, it
/// needs no Task, which would cost as much as all the rest of such an exchange.
package enum HTTPAnswer: Sendable {
  /// Known already.
  case now(HTTPResponse)
  /// Still to be made, in a Task that is cancelled when the client goes away.
  case later(@Sendable () async throws -> HTTPResponse)

  /// The response, waited for where that is needed.
  package var response: HTTPResponse {
    get async throws {
      switch self {
      case .now(let response): response
      case .later(let work): try await work()
      }
    }
  }
}

/// Answers requests: a router, or what stands in front of one.
package protocol HTTPResponder: Sendable {
  /// Called on the connection's loop, where the work runs too; anything that blocks belongs on another queue. What the
  /// work throws is answered with 500: a router answers its handlers' errors itself.
  func respond(to request: HTTPRequest) -> HTTPAnswer
}
