import HTTP
import Synchronization

/// A receiver of webhooks: an HTTP server on a port of its own, which answers `/hook` as the test chooses.
package final class WebhookReceiver: Sendable {
  /// A received request.
  package struct Received: Sendable {
    /// The fields with these names.
    package let contentType, signature: String?
    /// Its content.
    package let body: [UInt8]
  }

  /// How to answer one request.
  package enum Reaction: Sendable {
    /// With a status.
    case answers(Int)
    /// With 302 and this location.
    case redirects(String)
    /// Never.
    case staysSilent
    /// With 200 and content that never ends.
    case answersWithoutEnd
    /// The same, but a byte at a time, as if from a bad line.
    case trickles
  }

  private struct State {
    var received: [Received] = []
    var reactions: [Reaction] = []
    var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private final class Records: Sendable {
    let state = Mutex(State())

    func take(_ request: HTTPRequest) async throws -> HTTPResponse {
      let received = Received(
        contentType: request.fields["Content-Type"], signature: request.fields["Stillwave-Signature"],
        body: try await request.body.collect(upTo: 65_536))
      let (reaction, ready) = state.withLock { state in
        state.received.append(received)
        let ready = state.waiting.filter { $0.count <= state.received.count }
        state.waiting.removeAll { $0.count <= state.received.count }
        return (state.reactions.isEmpty ? .answers(204) : state.reactions.removeFirst(), ready)
      }
      for waiter in ready { waiter.continuation.resume() }
      switch reaction {
      case .answers(let code): return HTTPResponse(HTTPStatus(code: code))
      case .redirects(let location): return HTTPResponse(.found, fields: ["Location": location])
      case .answersWithoutEnd:
        return HTTPResponse(.ok, body: .stream(length: nil) { [UInt8](repeating: 0x78, count: 4096) })
      case .trickles:
        return HTTPResponse(
          .ok,
          body: .stream(length: nil) {
            try await Task.sleep(for: .milliseconds(10))
            return [0x78]
          })
      case .staysSilent:
        for await _ in AsyncStream<Never>.makeStream().stream {}
        return HTTPResponse(.ok)
      }
    }
  }

  /// The URL it listens on.
  package let url: String
  private let records: Records
  private let server: HTTPServer

  /// Uses these answers for the first requests, in order, and 204 for later ones.
  package init(_ reactions: Reaction...) throws {
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

  /// The requests so far.
  package var received: [Received] { records.state.withLock { $0.received } }

  /// Returns once there were this many.
  package func receives(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let areThere = records.state.withLock { state in
        if state.received.count < count { state.waiting.append((count, continuation)) }
        return state.received.count >= count
      }
      if areThere { continuation.resume() }
    }
  }

  /// Closes the port.
  package func stop() async { await server.stop(within: 0) }
}
