import Foundation
import Testing

@testable import Sounds

/// Acknowledged data survives a crash, started work is finished afterward, and unacknowledged data leaves nothing
/// behind.
struct DurabilityTests {
  /// Freezes a job's worker as soon as it appears, so that the job is sure to be unfinished in the next step.
  private func freezeWorker(_ server: TestServer, of job: String) throws -> pid_t {
    var found: pid_t?
    _ = eventually {
      found = server.workers().first { Processes.commandLine(of: $0).contains(job) }
      return found != nil
    }
    let worker = try #require(found)
    kill(worker, SIGSTOP)
    let isRunning = try eventually { try server.client.get("/v1/jobs/\(job)").json["state"] == .string("running") }
    #expect(isRunning)
    return worker
  }

  @Test func anUploadThatWasAcknowledgedSurvivesACrash() throws {
    let server = try TestServer()
    let bytes = Clip.tone.bytes
    let uploaded = try server.client.upload(bytes, name: "kept.wav")
    try server.crash()
    try server.restart()
    let id = try #require(uploaded["id"].string)
    let kept = try server.client.recording(id)
    for member in ["id", "name", "created_at", "bytes", "sha256", "format"] {
      #expect(kept[member] == uploaded[member], "\(member)")
    }
    #expect(try server.client.get("/v1/recordings/\(id)/audio").body == bytes)
    try server.client.succeed(try #require(uploaded["waveform"]["job"].string))
    #expect(try server.client.recording(id)["waveform"]["state"] == .string("ready"))
    try server.stop()
  }

  @Test func aJobThatWasRunningAtACrashRunsAgainAndSucceeds() throws {
    let server = try TestServer()
    let source = try #require(try server.client.uploadReady(LongClip.wave())["id"].string)
    let asked = try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)
    let job = try #require(asked["id"].string)
    let worker = try freezeWorker(server, of: job)
    defer { kill(worker, SIGCONT) }
    try server.crash()
    // The orphan exits by itself, because its standard input has closed.
    kill(worker, SIGCONT)
    let isGone = eventually { Processes.naming(server.data).isEmpty }
    #expect(isGone)
    try server.restart()
    let finished = try server.client.succeed(job)
    #expect(finished["attempts"] == .number(2))
    let made = try server.client.recording(try #require(asked["result"]["recording"].string))
    #expect(made["sha256"].string?.count == 64 && made["waveform"]["state"] == .string("ready"))
    let isCleared = try eventually { try !server.leftovers().contains { $0.hasPrefix("jobs/") } }
    #expect(isCleared)
    try server.stop()
  }

  @Test("after a crash, another attempt builds a half-built waveform with the same values")
  func waveformAfterACrash() throws {
    let server = try TestServer()
    let client = server.client
    let recording = try client.upload(try LongClip.flac(server.folder), name: "long.flac")
    let id = try #require(recording["id"].string)
    let job = try #require(recording["waveform"]["job"].string)
    let path = "/v1/recordings/\(id)/waveform?scale=8192&channels=split&measures=peak,rms,average"
    let worker = try freezeWorker(server, of: job)
    defer { kill(worker, SIGCONT) }
    // The worker runs from one progress report to the next until there is something to see.
    var before = try client.get(path).json
    while (before["length"].int ?? 0) == 0 {
      kill(worker, SIGCONT)
      let state = try client.get("/v1/jobs/\(job)?wait=20").json["state"]
      kill(worker, SIGSTOP)
      try #require(state == .string("running"))
      before = try client.get(path).json
    }
    #expect(before["complete"] == .bool(false) && before["available_frames"].int ?? 0 > 0)
    try server.crash()
    kill(worker, SIGCONT)
    let isGone = eventually { Processes.naming(server.data).isEmpty }
    #expect(isGone)
    try server.restart()
    // The available part may have become smaller in between.
    #expect(try server.client.succeed(job)["attempts"] == .number(2))
    let after = try server.client.get(path).json
    #expect(after["complete"] == .bool(true))
    for member in ["data", "rms", "average"] {
      let (seen, whole) = (try #require(before[member].integers), try #require(after[member].integers))
      let isKept = !seen.isEmpty && whole.count > seen.count && whole.starts(with: seen)
      #expect(isKept, "\(member)")
    }
    try server.stop()
  }

  @Test func aRerunWaitsForTheOrphanOfItsJob() throws {
    let server = try TestServer()
    let source = try #require(try server.client.uploadReady(LongClip.wave())["id"].string)
    let job = try #require(try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)["id"].string)
    let worker = try freezeWorker(server, of: job)
    try server.crash()
    kill(worker, SIGKILL)
    // The test acts as an orphan: it locks the job's folder like one would.
    let folder = unsafe open(server.data + "/jobs/\(job)", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    let isHeld = eventually { flock(folder, LOCK_EX | LOCK_NB) == 0 }
    #expect(isHeld)
    try server.restart()
    var locks = ""
    let isWaiting = try eventually {
      locks = String(decoding: try contents("/proc/locks"), as: UTF8.self)
      return server.workers().contains { worker in
        locks.split(separator: "\n").contains {
          $0.contains("-> FLOCK") && $0.split(separator: " ").contains("\(worker)")
        }
      }
    }
    #expect(isWaiting, "\(server.workers()): \(locks)")
    close(folder)
    try server.client.succeed(job)
    let isTidy = try eventually { try !server.leftovers().contains { $0.hasPrefix("jobs/") } }
    #expect(isTidy)
    try server.stop()
  }

  @Test func stoppingEndsTheChildrenBeforeTheLastRequests() throws {
    let server = try TestServer("--grace-period", "600")
    let recording = try server.client.upload(try LongClip.flac(server.folder), name: "long.flac")
    kill(try freezeWorker(server, of: try #require(recording["waveform"]["job"].string)), SIGCONT)
    let slow = try Wire(port: server.client.port)
    #expect(slow.send("POST /v1/recordings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nRIFF"))
    #expect(try eventually { try server.leftovers().contains { $0.hasPrefix("incoming/") } })
    server.command.signal(SIGTERM)
    #expect(eventually { server.workers().isEmpty })
    // It's waiting for the rest of the upload.
    #expect(server.command.isRunning)
    slow.close()
    #expect(try server.command.finish().status == 0)
  }

  @Test func aStreamOfEventsEndsWithTheServiceAndGoesOnWithTheNext() throws {
    let server = try TestServer()
    let recording = try server.client.upload(try LongClip.flac(server.folder), name: "long.flac")
    let path = "/v1/jobs/\(try #require(recording["waveform"]["job"].string))/events"
    let wire = try Wire(port: server.client.port)
    wire.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    #expect(eventually { wire.hasInput })
    try server.stop()
    func ids(_ answer: Answer) -> [Substring] { answer.text.matches(of: /id: (.*)\n/).map(\.1) }
    let seen = ids(try wire.answer(to: "GET"))
    try server.restart()
    let rest = try server.client.get(path, ["Last-Event-ID": String(try #require(seen.last))])
    #expect(rest.text.contains("event: done\n") && Set(ids(rest)).isDisjoint(with: seen), "\(rest.text)")
    try server.stop()
  }

  @Test(arguments: ["with a length", "chunked", "as a form"])
  func disconnectingDuringAnUploadLeavesNothing(_ kind: String) throws {
    let server = try TestServer()
    let wire = try Wire(port: server.client.port)
    let half = Array(Clip.tone.bytes.prefix(30_000))
    let head = "POST /v1/recordings HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    switch kind {
    case "with a length": wire.send(head + "Content-Length: 48044\r\n\r\n")
    case "chunked": wire.send(head + "Transfer-Encoding: chunked\r\n\r\n\(String(half.count, radix: 16))\r\n")
    default:
      let part = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n"
      wire.send(head + "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 60000\r\n\r\n" + part)
    }
    wire.send(half)
    let hasBegun = try eventually { try server.leftovers().contains { $0.hasPrefix("incoming/") } }
    #expect(hasBegun)
    wire.close()
    try server.expectNothingKept()
    try server.stop()
  }

  @Test func aStoppingServiceRejectsAStalledUploadAndRemovesIt() throws {
    let server = try TestServer("--grace-period", "0.1")
    let wire = try Wire(port: server.client.port)
    wire.send("POST /v1/recordings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 48044\r\n\r\n")
    wire.send(Array(Clip.tone.bytes.prefix(30_000)))
    let hasBegun = try eventually { try server.leftovers().contains { $0.hasPrefix("incoming/") } }
    #expect(hasBegun)
    try server.stop()
    #expect(try wire.answer(to: "POST").status == 408)
    #expect(try !server.leftovers().contains { $0.hasPrefix("incoming/") })
  }
}
