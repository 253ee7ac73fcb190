import Foundation
import HTTP
import Testing
import Webhooks

@testable import AudioService
@testable import Storage

@Suite struct AuditLogTests {
  private static func lines(_ path: String) throws -> [[String: Any]] {
    try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
  }

  @Test func everyChangeAndEveryReadOfAudioIsRecorded() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/audit.jsonl"
    let keyed = try KeyedBench { $0.auditLogPath = path }
    let id = try await keyed.recording()
    let token = try await keyed.token("{\"recording\":\"\(id)\"}")
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)/audio?token=\(token)", key: nil) == 200)
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)") == 200)
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)/waveform") == 200)
    #expect(try await keyed.status(.patch, "/v1/recordings/\(id)", body: "{\"name\":\"a secret name\"}") == 200)
    #expect(try await keyed.status(.patch, "/v1/recordings/\(id)", body: "{}") == 400)
    #expect(try await keyed.status(.delete, "/v1/recordings/\(id)", key: "theirs") == 404)
    #expect(try await keyed.status(.delete, "/v1/recordings/\(id)") == 204)
    let lines = try Self.lines(path)
    let actions = lines.map { "\($0["action"] ?? "") \($0["status"] ?? "")" }
    #expect(
      actions == [
        "POST /v1/recordings 201", "POST /v1/tokens 201", "GET /v1/recordings/{id}/audio 200",
        "PATCH /v1/recordings/{id} 200", "DELETE /v1/recordings/{id} 204",
      ])
    #expect(lines.allSatisfy { $0["tenant"] as? String == "ours" && $0["key"] as? String == "ours" })
    #expect(lines[0]["location"] as? String == "/v1/recordings/\(id)")
    #expect(lines[2]["id"] as? String == id.text && lines[2]["token"] is String)
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(!text.contains(token) && !text.contains("secret") && !text.contains("?"))
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    await keyed.bench.runner.stop()
  }

  @Test(
    "the client's address is recorded, as a trusted proxy names it",
    arguments: [
      ("192.0.2.1:5", "198.51.100.7", "192.0.2.1:5"), ("10.0.0.1:5", "198.51.100.7", "198.51.100.7"),
      ("10.0.0.1:5", "203.0.113.9, 2001:db8::7, 10.0.0.1", "2001:db8::7"), ("10.0.0.1:5", "x", "10.0.0.1:5"),
    ])
  func address(peer: String, forwarded: String, recorded: String) async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/audit.jsonl"
    let keyed = try KeyedBench {
      $0.auditLogPath = path
      $0.trustedProxies = [Network("10.0.0.1/32")!]
    }
    let fields: HTTPFields = ["X-Forwarded-For": forwarded]
    let made = try await keyed.respond(.post, "/v1/recordings", fields: fields, body: "RIFF", from: peer)
    #expect(made.status == .created)
    #expect(try Self.lines(path).first?["peer"] as? String == recorded)
    await keyed.bench.runner.stop()
  }

  @Test func whatIsDeletedBecauseOfItsAgeIsRecorded() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/audit.jsonl"
    let keyed = try KeyedBench { $0.auditLogPath = path }
    let (ours, theirs) = (try await keyed.recording(), try await keyed.recording(key: "theirs"))
    for id in [ours, theirs] {
      _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    }
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 10)
    let retention = Retention(keyed.bench.context, keyed.bench.catalog)
    #expect(await keyed.bench.context.work.run { retention.sweep(createdBefore: later) } == 2)
    let lines = try Self.lines(path).filter { $0["action"] as? String == "retention" }
    let told = lines.map { ["\($0["id"] ?? "")", "\($0["tenant"] ?? "")"] }
    #expect(Set(told) == [[ours.text, "ours"], [theirs.text, "theirs"]])
    #expect(lines.allSatisfy { $0.count == 5 && $0["time"] is String && $0["entry"] is String })
    await keyed.bench.runner.stop()
  }

  @Test func theRecordingThatAnUploadBecomesIsNamedWhicheverRequestMakesIt() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/audit.jsonl"
    let keyed = try KeyedBench { $0.auditLogPath = path }
    let created = try await keyed.respond(.post, "/v1/uploads", fields: ["Upload-Length": "4"])
    let first = try #require(created.fields["Location"])
    let bytes: HTTPFields = ["Upload-Offset": "0", "Content-Type": Tus.contentType]
    let patched = try await keyed.respond(.patch, first, fields: bytes, body: "RIFF")
    // As if the service had ended between the last byte and the recording.
    let upload = Upload(id: UploadID(), length: 4, offset: 4, expiresAt: .now + 9e6)
    try Data("RIFF".utf8).write(to: URL(fileURLWithPath: keyed.bench.store.path(ofPart: upload.id)))
    try keyed.bench.catalog.of(#require(Tenant("ours"))).insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    var made: [String] = []
    for _ in 0..<2 {
      let head = try await keyed.respond(.head, "/v1/uploads/\(upload.id)")
      made.append("/v1/recordings/" + (try #require(head.fields["Stillwave-Recording"])))
    }
    let named = "/v1/recordings/" + (try #require(patched.fields["Stillwave-Recording"]))
    let lines = try Self.lines(path).suffix(2)
    #expect(lines.map { $0["action"] as? String } == ["PATCH /v1/uploads/{id}", "HEAD /v1/uploads/{id}"])
    #expect(lines.map { $0["location"] as? String } == [named, made[0]] && made[0] == made[1])
    await keyed.bench.runner.stop()
  }

  @Test func whatACrashLeavesUnwrittenIsWrittenByTheNextStart() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/audit.jsonl"
    let keyed = try KeyedBench { $0.auditLogPath = path }
    let outbox = try #require(keyed.bench.context.auditOutbox)
    let id = try await keyed.recording()
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    #expect(try await keyed.status(.patch, "/v1/recordings/\(id)", body: "{\"name\":\"b\"}") == 200)
    #expect(try await keyed.status(.patch, "/v1/recordings/\(id)", body: "{}") == 400)
    let written = try Self.lines(path)
    let entries = Set(written.compactMap { $0["entry"] as? String })
    #expect(written.count == 2 && entries.count == 2)
    // As if the process had ended before it deleted the rows, and the log had lost its end.
    try "".write(toFile: path, atomically: false, encoding: .utf8)
    #expect(outbox.writeOut(all: true))
    let again = try Self.lines(path)
    #expect(Set(again.compactMap { $0["entry"] as? String }) == entries)
    #expect(again.map { $0["action"] as? String } == written.map { $0["action"] as? String })
    #expect(again.allSatisfy { $0["status"] == nil && $0["key"] as? String == "ours" })
    #expect(again[0]["location"] as? String == "/v1/recordings/\(id)" && again[1]["id"] as? String == id.text)
    #expect(outbox.writeOut(all: true))
    #expect(try Self.lines(path).count == 2)
    // A clean stop leaves nothing to write.
    #expect(try await keyed.status(.delete, "/v1/recordings/\(id)") == 204)
    outbox.stop()
    #expect(try keyed.bench.catalog.takeAuditLines(all: true) == [])
    await keyed.bench.runner.stop()
  }

  @Test func theNameOfANewLogIsOnDisk() throws {
    let folder = try TemporaryFolder()
    for expected in [[FileOperationLog.Operation.sync(folder.path)], []] {
      let operations = FileOperationLog()
      try FileOperationLog.$current.withValue(operations) { _ = try AuditLog(path: folder.path + "/audit.jsonl") }
      #expect(operations.operations == expected)
    }
  }

  @Test func aRenamedLogIsOpenedAgain() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/audit.jsonl"
    let keyed = try KeyedBench { $0.auditLogPath = path }
    _ = try await keyed.recording()
    try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
    _ = try await keyed.recording()
    keyed.bench.context.reopenAudit()
    _ = try await keyed.recording()
    #expect(try Self.lines(path + ".1").count == 2)
    #expect(try Self.lines(path).count == 1)
    await keyed.bench.runner.stop()
  }

  @Test func theFirstChangeThatCannotBeRecordedIsTheLast() async throws {
    let keyed = try KeyedBench { $0.auditLogPath = "/dev/full" }
    // That a line can't be written is found out only after the change.
    #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 503)
    #expect(try keyed.bench.catalog.recordings(limit: 9).count == 1)
    for _ in 0..<2 { #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 503) }
    #expect(try keyed.bench.catalog.recordings(limit: 9).count == 1)
    #expect(try await keyed.status(.get, "/v1/recordings") == 200)
    #expect(
      performing: { try KeyedBench { $0.auditLogPath = "/nowhere/audit" } }, throws: { "\($0)".contains("/nowhere") })
    await keyed.bench.runner.stop()
  }
}
