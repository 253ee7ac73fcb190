import Testing

@testable import HTTP

@Suite("Line 7: requests", .serialized) struct MethodTests {
  /// Sends one request to a server with one route.
  private func ask(_ start: String, then rest: String = "") async throws -> WireClient.Answer {
    let routes = Router(routes: [Route(.get, "/") { _, _ in text("root") }]) { error, _ in
      ((error as? RoutingError)?.problem ?? Problem(.internalServerError, code: "x", detail: "")).response()
    }
    var answer: WireClient.Answer?
    try await withServer { request in
      try await routes.respond(to: request).response
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("\(start)\r\nHost: a\r\n\(rest)\r\n")
      answer = try client.answer()
    }
    return try #require(answer)
  }

  @Test(arguments: ["TRACE / HTTP/1.1", "CONNECT a:443 HTTP/1.1", "CONNECT / HTTP/1.1"])
  func traceAndConnectNeverSucceed(_ start: String) async throws {
    #expect(try await ask(start, then: "Authorization: Bearer secret\r\n").status >= 400)
  }

  @Test(arguments: [
    "GET / HTTP/1.1", "GET / HTTP/1.2", "GET / HTTP/1.9", "\r\nGET / HTTP/1.1", "GET http://a/ HTTP/1.1",
  ])
  func theseAreServedAs11(_ start: String) async throws {
    let answer = try await ask(start)
    #expect(answer.body == "root")
    #expect(answer.head.hasPrefix("HTTP/1.1 200 OK\r\n"))
    #expect(answer.field("Connection") == nil)
  }

  @Test func anUpgradeIsNotTaken() async throws {
    let answer = try await ask("GET / HTTP/1.1", then: "Connection: Upgrade\r\nUpgrade: websocket\r\n")
    #expect(answer.status == 200)
  }
}
