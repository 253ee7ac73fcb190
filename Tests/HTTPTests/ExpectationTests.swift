import Testing

@testable import HTTP

@Suite("Line 9: Expect", .serialized) struct ExpectationTests {
  @Test func aClientIsToldToContinueWhenTheHandlerReads() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      #expect(try client.answer().status == 100)
      try client.send("abc")
      #expect(try client.answer().body == "/ abc")
    }
  }

  @Test func aClientIsNotToldToContinueWhenTheAnswerIsKnown() async throws {
    let limited: @Sendable (HTTPRequest) async throws -> HTTPResponse = { request in
      request.body.limit(to: 2)
      _ = try await request.body.read()
      return text("read")
    }
    try await withServer(limited) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      let answer = try client.answer()
      #expect(answer.status == 413)
      #expect(answer.field("Connection") == "close")
    }
  }

  @Test func anEmptyExpectationDoesNotCount() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST /p HTTP/1.1\r\nHost: a\r\nExpect:\r\nContent-Length: 3\r\n\r\n")
      try client.send("abc")
      #expect(try client.answer().body == "/p abc")
    }
  }

  @Test func aClientOf10IsNeverToldToContinue() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST /p HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
      try client.send("abc")
      let answer = try client.answer()
      #expect(answer.status == 200)
      #expect(answer.body == "/p abc")
    }
  }

  @Test func aClientThatDoesNotWaitIsNotToldToContinue() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST /p HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc")
      #expect(try client.answer().body == "/p abc")
    }
  }

  @Test(arguments: [HTTPStatus.notFound, .unsupportedMediaType, .unauthorized])
  func anAnswerWithoutTheBodySendsNo100(_ status: HTTPStatus) async throws {
    try await withServer { _ in
      text("no", status)
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
      let answer = try client.answer()
      #expect(answer.status == status.code)
      // The client may or may not send the body now, so the next request couldn't be found.
      #expect(answer.field("Connection") == "close")
    }
  }
}
