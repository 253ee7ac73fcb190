import Foundation
import Testing

/// The settings of `serve`, as flags and as environment variables.
struct SettingsTests {
  @Test func aPageOfAConfiguredOriginMayUseTheService() throws {
    let server = try TestServer("--cors-origin", "https://app.example,https://other.example:8443")
    server.client.followsContract = false
    let asked = try server.client.send(
      "OPTIONS", "/v1/recordings", ["Origin": "https://app.example", "Access-Control-Request-Method": "POST"])
    #expect(asked.status == 204)
    #expect(asked["Access-Control-Allow-Origin"] == "https://app.example")
    #expect(asked["Access-Control-Allow-Methods"]?.contains("POST") == true)
    let read = try server.client.get("/v1/recordings", ["Origin": "https://other.example:8443"])
    #expect(read["Access-Control-Allow-Origin"] == "https://other.example:8443")
    #expect(read["Vary"]?.contains("Origin") == true)
    let foreign = try server.client.get("/v1/recordings", ["Origin": "https://evil.example"])
    #expect(foreign["Access-Control-Allow-Origin"] == nil)
    #expect(read["Cross-Origin-Resource-Policy"] == "cross-origin")
    #expect(foreign["Cross-Origin-Resource-Policy"] == "same-origin")
    try server.stop()
  }

  @Test func aForeignPageCanNeitherReachNorChangeAnything() throws {
    let server = try TestServer("--allowed-hosts", "audio.example")
    #expect(try server.client.get("/v1/recordings", ["Host": "evil.example"]).status == 403)
    let read = try server.client.get("/v1/recordings", ["Host": "audio.example"])
    #expect(read.status == 200)
    #expect(read["Cross-Origin-Resource-Policy"] == "same-origin")
    let forged = try server.client.send(
      "POST", "/v1/recordings", ["Origin": "https://evil.example", "Content-Type": "text/plain"],
      .bytes(Array("RIFF".utf8)))
    #expect(forged.status == 403)
    #expect(forged.json["code"].string == "origin_not_allowed")
    try server.expectNothingKept()
    try server.stop()
  }

  @Test func onlyAClientThatHoldsItsConnectionsIsRejected() throws {
    let server = try TestServer("--max-connections-per-client", "3", "--trusted-proxies", "127.0.0.2")
    func status(of wire: Wire) throws -> Answer {
      wire.send("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
      return try wire.answer(to: "GET")
    }
    func connect(_ count: Int, source: UInt32) throws -> [Wire] {
      try (0..<count).map { _ in try Wire(port: server.client.port, source: source) }
    }
    let held = try connect(3, source: 3)
    for wire in held { #expect(try status(of: wire).status == 200) }
    let refused = try status(of: try #require(try connect(1, source: 3).first))
    #expect(refused.status == 429 && refused["retry-after"] == "1")
    #expect(refused.json["code"].string == "limit_connections")
    for wire in try connect(9, source: 2) + connect(3, source: 4) { #expect(try status(of: wire).status == 200) }
    for wire in held { wire.close() }
    try server.stop()
  }

  @Test(arguments: [
    ["--cors-origin", "app.example"], ["--cors-origin", "https://app.example/path"], ["--allowed-hosts", "a b/c"],
    ["--idle-timeout", "0"], ["--max-connections", "-1"], ["--max-connections-per-client", "0"],
    ["--listen", "nowhere"], ["--cache-control", "shared"],
    ["--webhook-secret", "too short"], ["--webhook-networks", "10.0.0.0/8,example.com"],
    ["--webhook-ca", "/nowhere/ca.pem"],
    ["--max-age", "400000000"], ["--trusted-proxies", "10.0.0.0/40"], ["--max-queued-jobs-per-client", "0"],
    ["--max-event-streams-per-client", "-1"], ["--upload-expiry", "0"], ["--tenant-limits", "jobs=1"],
    ["--base-path", "audio"], ["--base-path", "/v1/audio"], ["--base-path", "/a/../b"],
  ])
  func aSettingThatMakesNoSenseIsExplainedAtTheStart(_ arguments: [String]) throws {
    let folder = try TemporaryFolder()
    let command = try Command(try Program.path(), ["serve", "--data", folder.file("data")] + arguments)
    let finished = try command.finish(withinSeconds: 30)
    #expect(finished.status != 0)
    #expect(finished.errors.contains(arguments[0]), "\(finished.errors)")
  }
}
