import Testing

@testable import HTTP

/// Answers `/now` immediately and everything else later, streams in pieces, and fails at `/fail`.
private struct Mixed: HTTPResponder {
  func respond(to request: HTTPRequest) -> HTTPAnswer {
    let path = request.target.path
    return switch path {
    case "/now": .now(text(path))
    case "/stream": .now(HTTPResponse(.ok, body: Self.stream()))
    case "/later-stream": .later { HTTPResponse(.ok, body: Self.stream()) }
    case "/fail": .later { throw CancellationError() }
    default:
      .later {
        await Task.yield()
        return text(path)
      }
    }
  }

  private static func stream() -> ResponseBody {
    let (pieces, feed) = AsyncStream.makeStream(of: [UInt8].self)
    for piece in ["one ", "two ", "three"] { feed.yield(Array(piece.utf8)) }
    feed.finish()
    return .stream(length: nil) {
      for await piece in pieces { return piece }
      return nil
    }
  }
}

private func get(_ path: String, _ method: String = "GET") -> String { "\(method) \(path) HTTP/1.1\r\nHost: a\r\n\r\n" }

@Suite("Line 8: immediate and delayed answers", .serialized) struct AnswerTests {
  @Test func thousandsOfImmediatePipelinedAnswersArriveInOrder() async throws {
    try await withServer(responder: Mixed()) { port, server in
      let client = try WireClient(port: port)
      try client.send(String(repeating: get("/now"), count: 3000) + get("/last"))
      for _ in 0..<3000 { #expect(try client.answer().body == "/now") }
      #expect(try client.answer().body == "/last")
      #expect(server.statistics.requests == 3001)
    }
  }

  @Test func bothKindsKeepTheirOrder() async throws {
    try await withServer(responder: Mixed()) { port, _ in
      let client = try WireClient(port: port)
      let paths = (0..<60).map { ["/now", "/a", "/stream", "/later-stream", "/now", "/b"][$0 % 6] }
      try client.send(paths.map { get($0) }.joined())
      for path in paths {
        let answer = try client.answer()
        #expect(answer.status == 200)
        #expect(answer.body == (path.hasSuffix("stream") ? "one two three" : path))
      }
    }
  }

  @Test func aHeadRequestDoesNotReadTheStream() async throws {
    try await withServer(responder: Mixed()) { port, _ in
      let client = try WireClient(port: port)
      try client.send(get("/stream", "HEAD") + get("/now"))
      #expect(try client.answer(toHead: true).field("Transfer-Encoding") == "chunked")
      #expect(try client.answer().body == "/now")
    }
  }

  @Test func failedWorkIsAnsweredAndTheConnectionKept() async throws {
    try await withServer(responder: Mixed()) { port, _ in
      let client = try WireClient(port: port)
      try client.send(get("/fail") + get("/now"))
      let answer = try client.answer()
      #expect(answer.status == 500)
      #expect(answer.body.contains("internal_error"))
      #expect(try client.answer().body == "/now")
    }
  }
}
