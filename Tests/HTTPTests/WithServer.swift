import Testing

@testable import HTTP

/// Answers with a closure.
private struct Answering: HTTPResponder {
  let body: @Sendable (HTTPRequest) async throws -> HTTPResponse

  func respond(to request: HTTPRequest) -> HTTPAnswer {
    .later {
      do {
        return try await body(request)
      } catch let error as RequestBodyError {
        return error.problem.response()
      } catch {
        return HTTPResponse(.internalServerError)
      }
    }
  }
}

func text(_ text: String, _ status: HTTPStatus = .ok) -> HTTPResponse {
  HTTPResponse(status, fields: ["Content-Type": "text/plain"], body: .bytes(Array(text.utf8)))
}

/// Returns a configuration that differs from the default.
func configured(_ change: (inout HTTPServerConfiguration) -> Void) -> HTTPServerConfiguration {
  var configuration = HTTPServerConfiguration()
  change(&configuration)
  return configuration
}

/// Runs a server on a free port while `test` runs.
func withServer(
  _ handler: @escaping @Sendable (HTTPRequest) async throws -> HTTPResponse,
  configuration: HTTPServerConfiguration = HTTPServerConfiguration(),
  test: (UInt16, HTTPServer) async throws -> Void
) async throws {
  try await withServer(responder: Answering(body: handler), configuration: configuration, test: test)
}

/// Runs a server with this responder on a free port while `test` runs.
func withServer(
  responder: any HTTPResponder, configuration: HTTPServerConfiguration = HTTPServerConfiguration(),
  test: (UInt16, HTTPServer) async throws -> Void
) async throws {
  var configuration = configuration
  configuration.port = 0
  let server = HTTPServer(configuration, responder: responder)
  let address = try server.start()
  do {
    try await test(address.port, server)
  } catch {
    await server.stop(within: 0)
    throw error
  }
  await server.stop(within: 0)
  #expect(server.statistics.openConnections == 0)
}

/// Answers with the path and the body, if there is one.
@Sendable func echo(_ request: HTTPRequest) async throws -> HTTPResponse {
  let body = try await request.body.collect(upTo: 1 << 20)
  return text(request.target.path + (body.isEmpty ? "" : " " + String(decoding: body, as: UTF8.self)))
}

/// A signal that is given once, from one side to the other.
final class Signal: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func give() { continuation.finish() }
  func wait() async { for await _ in stream {} }
}
