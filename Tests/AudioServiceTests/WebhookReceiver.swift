import HTTP
import Synchronization
import Testing

/// Somebody who asked for webhooks: an HTTP server on a port of its own, which answers `/hook` as it is told.
final class WebhookReceiver: Sendable {
  struct Received: Sendable {
    let contentType, signature: String?
    let body: [UInt8]
  }

  enum Reaction: Sendable {
    case answers(Int)
    case redirects(String)
    /// Never.
    case staysSilent
    case answersWithoutEnd
  }

  private struct State {
    var received: [Received] = []
    var reactions: [Reaction] = []
  }

  private final class Records: Sendable {
    let state = Mutex(State())

    func take(_ request: HTTPRequest) async throws -> HTTPResponse {
      let received = Received(
        contentType: request.fields["Content-Type"], signature: request.fields["Stillwave-Signature"],
        body: try await request.body.collect(upTo: 65_536))
      let reaction = state.withLock { state in
        state.received.append(received)
        return state.reactions.isEmpty ? .answers(204) : state.reactions.removeFirst()
      }
      switch reaction {
      case .answers(let code): return HTTPResponse(HTTPStatus(code: code))
      case .redirects(let location): return HTTPResponse(.found, fields: ["Location": location])
      case .answersWithoutEnd:
        return HTTPResponse(.ok, body: .stream(length: nil) { [UInt8](repeating: 0x78, count: 4096) })
      case .staysSilent:
        for await _ in AsyncStream<Never>.makeStream().stream {}
        return HTTPResponse(.ok)
      }
    }
  }

  let url: String
  private let records: Records
  private let server: HTTPServer

  /// Reacts to the first requests as told, in turn, and with 204 to those after.
  init(_ reactions: Reaction...) throws {
    let records = Records()
    records.state.withLock { $0.reactions = reactions }
    self.records = records
    var configuration = HTTPServerConfiguration()
    configuration.host = "127.0.0.1"
    configuration.port = 0
    let route = Route(.post, "/hook") { request, _ in try await records.take(request) }
    server = HTTPServer(
      configuration, responder: Router(routes: [route]) { _, _ in HTTPResponse(.internalServerError) })
    url = "http://\(try server.start())/hook"
  }

  var received: [Received] { records.state.withLock { $0.received } }

  func stop() async { await server.stop(within: 0) }
}
