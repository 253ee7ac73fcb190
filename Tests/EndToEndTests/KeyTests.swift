import Foundation
import Testing

/// Keys, tried on the real program.
struct KeyTests {
  /// Runs `stillwave keys` and returns its output.
  private static func keys(_ words: String..., file: String, status: Int32 = 0) throws -> (
    output: String, errors: String
  ) {
    let command = try Command(try Program.path(), ["keys"] + words + ["--keys", file])
    let finished = try command.finish()
    #expect(finished.status == status, "\(finished.errors)")
    return (try command.output().trimmingCharacters(in: .newlines), finished.errors)
  }

  private static func bearer(_ secret: String) -> [String: String] { ["Authorization": "Bearer \(secret)"] }

  private func log(_ server: TestServer) throws -> String {
    String(decoding: try contents(server.command.folder.file("errors")), as: UTF8.self)
  }

  @Test func keysOpenAServiceWhileItRuns() throws {
    let folder = try TemporaryFolder()
    let file = folder.file("keys.jsonl")
    let secret = try Self.keys("add", "app", "--tenant", "acme", "--scopes", "read,write", file: file).output
    let admin = try Self.keys("add", "ops", "--scopes", "admin", file: file).output
    #expect(secret.utf8.count >= 32)
    #expect(!String(decoding: try contents(file), as: UTF8.self).contains(secret))
    let server = try TestServer("--keys", file, "--admin-listen", "127.0.0.1:0")
    let client = server.client
    #expect(try client.get("/healthz").status == 200)
    let refused = try client.get("/v1/recordings")
    #expect(refused.status == 401 && refused["www-authenticate"] != nil)
    #expect(refused["referrer-policy"] == "no-referrer")
    #expect(try client.get("/v1/recordings", Self.bearer(secret)).status == 200)
    #expect(try client.get("/metrics").status == 401)
    #expect(try client.get("/metrics", Self.bearer(secret)).status == 403)
    let metrics = try client.get("/metrics", Self.bearer(admin))
    #expect(
      metrics.text.contains("stillwave_http_request_duration_seconds_bucket{method=\"GET\",route=\"/v1/recordings\""))
    // The operators' own port needs no key.
    let started = try log(server)
    let port = try #require(
      started.firstMatch(of: #/"address":"127.0.0.1:(\d+)","level":"notice","message":"operators/#))
    let operators = HTTPClient(port: try #require(UInt16(port.1)))
    #expect(try operators.get("/readyz").status == 200)
    operators.followsContract = false
    #expect(try operators.get("/v1/recordings").status == 404)

    // The log names the tenant and the key, and never the token.
    let id = try #require(
      try client.send("POST", "/v1/recordings", Self.bearer(secret), .bytes(LongClip.wave())).json["id"].string)
    let minted = try client.send("POST", "/v1/tokens", Self.bearer(secret), .json("{\"recording\":\"\(id)\"}"))
    let token = try #require(minted.json["token"].string)
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    let read = try client.get("/v1/recordings/\(id)/audio?token=\(token)", ["traceparent": trace])
    #expect(read.status == 200 && read["cross-origin-resource-policy"] == "cross-origin")
    #expect(read["cache-control"]?.hasPrefix("private") == true)
    #expect(try eventually { try log(server).contains(trace) })
    let lines = try log(server).split(separator: "\n").filter { $0.contains(trace) }
    #expect(lines.allSatisfy { $0.contains("\"tenant\":\"acme\"") && $0.contains("\"key\":\"app\"") })
    let all = try log(server)
    #expect(!all.contains(token) && !all.contains(secret))

    // Changes of the file work without a restart.
    let second = try Self.keys("rotate", "app", file: file).output
    #expect(try eventually { try client.get("/v1/recordings", Self.bearer(secret)).status == 401 })
    #expect(try client.get("/v1/recordings/\(id)", Self.bearer(second)).status == 200)
    #expect(try client.get("/v1/recordings/\(id)?token=\(token)").status == 200)
    let third = try Self.keys("rotate", "app", "--overlap", "1h", file: file).output
    #expect(try eventually { try client.get("/v1/recordings", Self.bearer(third)).status == 200 })
    #expect(try client.get("/v1/recordings", Self.bearer(second)).status == 200)
    _ = try Self.keys("revoke", "app", file: file)
    #expect(try eventually { try client.get("/v1/recordings", Self.bearer(second)).status == 401 })
    #expect(try client.get("/v1/recordings/\(id)?token=\(token)").status == 401)

    // What isn't valid changes nothing, also at SIGHUP.
    try Data("nonsense\n".utf8).write(to: URL(filePath: file))
    server.command.signal(SIGHUP)
    #expect(try eventually { try log(server).contains("line 1 is not a JSON object") })
    #expect(try client.get("/readyz", Self.bearer(admin)).status == 200)
    try server.stop()
    let command = try Command(try Program.path(), ["serve", "--data", folder.file("data"), "--keys", file])
    let finished = try command.finish()
    #expect(finished.status != 0 && finished.errors.contains("line 1 is not a JSON object"))
  }

  @Test func theCommandsKeepTheFileValid() throws {
    let folder = try TemporaryFolder()
    let file = folder.file("keys.jsonl")
    _ = try Self.keys("list", file: file, status: 1)
    _ = try Self.keys(
      "add", "one", "--tenant", "a b", "--limit", "recordings=5", "--expires-at", "2099-01-01T00:00:00Z", "--note", "n",
      file: file)
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    let before = try contents(file)
    for words in [
      ["add", "one"], ["add", "two", "--scopes", "fly"], ["add", "two", "--tenant", "a", "--scopes", "admin"],
      ["add", "two", "--limit", "cats=1"], ["add", "two", "--expires-at", "soon"], ["add", "t o"], ["revoke", "two"],
      ["rotate", "two"], ["rotate", "one", "--overlap", "0h"], ["rotate", "one", "--overlap", "1w"],
      ["rotate", "one", "--overlap", "366d"], ["rotate", "one", "--overlap", "-1h"],
      ["rotate", "one", "--overlap", "9223372036854775807d"],
    ] {
      let command = try Command(try Program.path(), ["keys"] + words + ["--keys", file])
      #expect(try command.finish().status != 0, "\(words)")
      #expect(try contents(file) == before)
    }
    let list = try Self.keys("list", file: file).output
    #expect(list.contains("one\ta b\tread\t2099-01-01T00:00:00.000Z\tn"))
  }

  @Test func theAuditLogIsOpenedAgainAtSIGHUP() throws {
    let folder = try TemporaryFolder()
    let audit = folder.file("audit.jsonl")
    let server = try TestServer("--audit-log", audit)
    _ = try server.client.uploadReady(LongClip.wave())
    try FileManager.default.moveItem(atPath: audit, toPath: audit + ".1")
    server.command.signal(SIGHUP)
    #expect(eventually { FileManager.default.fileExists(atPath: audit) })
    _ = try server.client.uploadReady(LongClip.wave())
    for name in [audit, audit + ".1"] {
      #expect(String(decoding: try contents(name), as: UTF8.self).contains("\"action\":\"POST /v1/recordings\""))
    }
  }
}
