import HTTP
import S3Storage
import Testing

/// The client that fetches ranges from other nodes.
@Suite struct RangeClientTests {
  private struct Answering: HTTPResponder {
    let answer: @Sendable (HTTPRequest) -> HTTPAnswer
    func respond(to request: HTTPRequest) -> HTTPAnswer { answer(request) }
  }

  /// Fetches bytes 10 to 19 from a server.
  private func fetch(
    seconds: Double = 60, _ answer: @escaping @Sendable (HTTPRequest) -> HTTPAnswer
  ) async throws -> [UInt8]? {
    var http = HTTPServerConfiguration()
    (http.port, http.loopCount) = (0, 1)
    let server = HTTPServer(http, responder: Answering(answer: answer))
    let address = try server.start()
    defer { withExtendedLifetime(server) {} }
    let client = RangeClient(connectSeconds: seconds, seconds: seconds)
    return try await blocking { try client.bytes(10..<20, of: "http://\(address)/x", fields: [("X-One", "1")]) }
  }

  @Test func aRangeIsFetchedAndAMissingFileIsNil() async throws {
    let bytes = try await fetch { request in
      guard request.fields["Range"] == "bytes=10-19", request.fields["X-One"] == "1" else {
        return .now(HTTPResponse(.badRequest))
      }
      return .now(
        HTTPResponse(.partialContent, fields: ["Content-Range": "bytes 10-19/99"], body: .bytes(Array(10..<20))))
    }
    #expect(bytes == Array(10..<20))
    #expect(try await fetch { _ in .now(HTTPResponse(.notFound)) } == nil)
  }

  @Test("a server that never answers or trickles is given up", arguments: [false, true])
  func slowness(trickles: Bool) async throws {
    await #expect(throws: S3Error.timedOut) {
      try await fetch(seconds: 0.2) { _ in
        .later {
          if !trickles { for await _ in AsyncStream<Never>.makeStream().stream {} }
          let fields: HTTPFields = ["Content-Range": "bytes 10-19/99"]
          return HTTPResponse(
            .partialContent, fields: fields,
            body: .stream(length: 10) {
              try await Task.sleep(for: .milliseconds(100))
              return [0]
            })
        }
      }
    }
  }
}
