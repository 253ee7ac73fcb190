import Testing

@testable import HTTP

/// The configuration determines the form of the server's own refusals, and sees as much of the head as was received.
@Suite(.serialized) struct RefusalTests {
  private static let origin = "Origin: https://app.example\r\n"

  @Test(arguments: [
    ("BREW / HTTP/1.1\r\nHost: a\r\n\(origin)\r\n", 501), ("GET / HTTP/9.9\r\n\(origin)Host: a\r\n\r\n", 505),
    ("GET /%zz HTTP/1.1\r\nHost: a\r\n\(origin)\r\n", 400), ("GET / HTTP/1.1\r\n\(origin)\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\(origin)\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: a\r\n\(origin)Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    ("GET / HTTP/1.1\r\nHost: a\r\n\(origin)Expect: tea\r\n\r\n", 417),
    ("GET / HTTP/1.1\r\nHost: a\r\n\(origin)X Y: a\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: a\r\n\(origin)X: \(String(repeating: "a", count: 20_000))\r\n\r\n", 431),
    ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: a\r\n\(origin)\r\n", 414),
    ("POST / HTTP/1.1\r\nHost: a\r\n\(origin)Transfer-Encoding: chunked\r\n\r\nx\r\n", 400),
  ])
  func aPageOfAConfiguredOriginMayReadARefusal(_ wire: String, _ status: Int) async throws {
    let policy = CrossOriginPolicy(
      origins: .only(Set([Origin("https://app.example")].compactMap { $0 })), requestFields: [], exposedFields: [])
    let configuration = configured {
      $0.refusal = { problem, fields in policy.sharing(problem.response(), withRequestOf: fields) }
    }
    try await withServer(echo, configuration: configuration) { port, _ in
      let client = try WireClient(port: port)
      try client.send(wire)
      let answer = try client.answer()
      #expect(answer.status == status)
      #expect(answer.field("Access-Control-Allow-Origin") == "https://app.example")
      #expect(answer.field("Vary") == "Origin, Referer")
      let foreign = try WireClient(port: port)
      try foreign.send(wire.replacing("app.example", with: "evil.example"))
      #expect(try foreign.answer().field("Access-Control-Allow-Origin") == nil)
    }
  }

  @Test func aSlowHeadMayAlsoLinger() async throws {
    let configuration = configured {
      $0.limits.headSeconds = 0.05
      $0.refusal = { problem, fields in text(fields["Origin"] ?? "none", problem.status) }
    }
    try await withServer(echo, configuration: configuration) { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\(Self.origin)X: ")
      let answer = try client.answer()
      #expect(answer.status == 408 && answer.body == "https://app.example")
    }
  }
}
