import Testing

@testable import HTTP

private let routes = Router(
  routes: [
    Route(.get, "/") { _, _ in text("root") }, Route(.post, "/jobs") { _, _ in text("made", .created) },
    Route(.get, "/files/{name}") { _, parameters in text(parameters["name"]) },
  ],
  problem: { error, _ in
    ((error as? RoutingError)?.problem ?? Problem(.internalServerError, code: "x", detail: "")).response()
  })

@Suite("Line 7: requests", .serialized) struct MethodTests {
  /// Sends one request to a server with `routes`.
  private func ask(_ start: String, then rest: String = "", toHead: Bool = false) async throws -> WireClient.Answer {
    var answer: WireClient.Answer?
    try await withServer { request in
      try await routes.respond(to: request).response
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("\(start)\r\nHost: a\r\n\(rest)\r\n")
      answer = try client.answer(toHead: toHead)
    }
    return try #require(answer)
  }

  @Test(arguments: ["DELETE", "PUT", "PATCH", "TRACE", "POST", "QUERY"])
  func aKnownMethodThatTheResourceLacksIs405WithAllow(_ method: String) async throws {
    let answer = try await ask("\(method) / HTTP/1.1")
    #expect(answer.status == 405)
    #expect(answer.field("Allow") == "GET, HEAD, OPTIONS")
  }

  @Test(arguments: [
    ("OPTIONS * HTTP/1.1", "GET, HEAD, OPTIONS, POST"), ("OPTIONS / HTTP/1.1", "GET, HEAD, OPTIONS"),
    ("OPTIONS /jobs HTTP/1.1", "OPTIONS, POST"),
  ])
  func optionsSaysWhatIsAllowed(_ start: String, _ allowed: String) async throws {
    let answer = try await ask(start)
    #expect(answer.status == 204)
    #expect(answer.field("Allow") == allowed)
    #expect(answer.field("Content-Length") == nil)
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

  @Test(arguments: [
    ("/files/%2e%2e", ".."), ("/files/%252e", "%2e"), ("/files/..%2F..%2Fetc%2Fpasswd", "../../etc/passwd"),
  ])
  func aPathIsDecodedOnceAndIsNoFile(_ path: String, _ name: String) async throws {
    #expect(try await ask("GET \(path) HTTP/1.1").body == name)
  }

  @Test(arguments: ["/../etc/passwd", "/files/../../etc/passwd", "//etc/passwd", "/files//"])
  func dotsAndSlashesMatchNoRoute(_ path: String) async throws {
    #expect(try await ask("GET \(path) HTTP/1.1").status == 404)
  }

  @Test func anUpgradeIsNotTaken() async throws {
    let answer = try await ask("GET / HTTP/1.1", then: "Connection: Upgrade\r\nUpgrade: websocket\r\n")
    #expect(answer.status == 200)
  }
}
