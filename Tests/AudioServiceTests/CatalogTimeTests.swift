import Foundation
import HTTP
import Terms
import Testing
import Webhooks

@testable import AudioService
@testable import Jobs
@testable import Storage

/// The clock of this machine is wrong, and the catalog's is right.
@Suite struct CatalogTimeTests {
  private let bench: TestBench

  init() throws {
    bench = try TestBench(script: "gate; finish") { $0.webhooks.secret = WebhookSecret("a secret of the tests") }
  }

  /// Says how far this machine's clock is ahead of the catalog's, and returns the catalog's time.
  private func lead(by seconds: Double) -> Timestamp {
    let right = Timestamp.now + -seconds
    bench.catalog.note(clock: right)
    return right
  }

  private func isNear(_ one: Timestamp, _ other: Timestamp) -> Bool {
    abs(one.milliseconds - other.milliseconds) < 3_600_000
  }

  @Test("a recording is as old as the catalog's clock says")
  func age() async throws {
    let right = lead(by: 36_000)
    let answer = try await bench.respond(.post, "/v1/recordings", body: "RIFF")
    #expect(answer.status == .created)
    let made = try #require(try bench.catalog.recordings(limit: 1).first)
    #expect(isNear(made.createdAt, right))
  }

  @Test("a waveform that is built with the upload takes as long as it does by the catalog's clock")
  func earlyWaveform() async throws {
    let holder = LeaseHolder { .now + -36_000 }
    let bench = try TestBench(holder: holder) { $0.takesInShortUploads = true }
    bench.catalog.note(clock: .now + -36_000)
    let answer = try await bench.respond(.post, "/v1/recordings", body: "RIFF")
    #expect(answer.status == .created)
    let recording = try #require(try bench.catalog.recordings(limit: 1).first)
    let job = try #require(try recording.waveformJob.flatMap { try bench.catalog.job($0) })
    let (started, finished) = (try #require(job.startedAt), try #require(job.finishedAt))
    #expect(job.state == .succeeded && isNear(job.createdAt, .now + -36_000) && isNear(started, finished))
  }

  @Test("jobs, labels, profiles and kept answers are as old as the catalog's clock says")
  func otherRows() async throws {
    let source = try bench.recording()
    let right = lead(by: 36_000)
    let path = "/v1/recordings/\(source.id)"
    let fields: HTTPFields = ["Idempotency-Key": "k"]
    let denoised = try await bench.respond(.post, path + "/denoise", fields: fields, body: "{}")
    #expect(denoised.status == .accepted)
    let labeled = try await bench.respond(
      .post, path + "/labels", fields: ["Content-Type": "text/plain"], body: "0.1\t0.2\tone\n")
    #expect(labeled.status == .created)
    let profile = try await bench.respond(
      .post, "/v1/noise-profiles",
      body: "{\"frequencies\":[0,100,200],\"power_db\":[[-60,-70,-80]],\"steadiness\":[0.5]}")
    #expect(profile.status == .created)
    let id = denoised.fields["Location"].flatMap { JobID(String($0.suffix(36))) }
    let (whole, tenant) = (bench.catalog, bench.catalog.of(.none))
    let job = try #require(try id.flatMap { try whole.job($0) })
    let track = try #require(try tenant.labelTracks(of: source.id).first)
    let kept = try #require(try tenant.noiseProfiles(limit: 1).first)
    let answer = try #require(try tenant.answer(scope: "in-process POST \(path)/denoise", key: "k"))
    for time in [job.createdAt, track.createdAt, track.changedAt, kept.createdAt, kept.changedAt, answer.createdAt] {
      #expect(isNear(time, right))
    }
  }

  @Test("a kept answer is good for a day by the catalog's clock")
  func keptAnswer() async throws {
    _ = lead(by: 90_000)
    let fields: HTTPFields = ["Idempotency-Key": "k"]
    let first = try await bench.respond(.post, "/v1/recordings", fields: fields, body: "RIFF")
    #expect(first.status == .created)
    let stored = try bench.catalog.recordings(limit: 9)
    // The clock of this machine is set right.
    bench.catalog.note(clock: .now + -90_000 + 82_800)
    let again = try await bench.respond(.post, "/v1/recordings", fields: fields, body: "RIFF")
    #expect(again.fields["Idempotency-Replayed"] == "true")
    #expect(try bench.catalog.recordings(limit: 9).map(\.id) == stored.map(\.id))
  }

  @Test("tokens end by the catalog's clock")
  func token() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    // Ahead, because this clock doesn't follow one that is set back.
    keyed.bench.catalog.note(clock: .now + 36_000)
    let token = try await keyed.token("{\"recording\":\"\(id)\",\"expires_in\":3600}")
    let secret = try keyed.bench.context.access.secrets.signing()
    let end = try #require(AccessToken(Array(token.utf8), secrets: [secret])).exp
    #expect(isNear(Timestamp(milliseconds: end * 1000), .now + 36_000 + 3600))
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: token) == 200)
  }

  @Test("a webhook is due when the catalog's clock says so")
  func webhook() async throws {
    let source = try bench.recording()
    let right = lead(by: 36_000)
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"https://a.example/\"}")
    #expect(answer.status == .accepted)
    let webhook = try #require(try bench.catalog.webhooks().first?.webhook)
    #expect(isNear(webhook.notBefore, right))
  }

  @Test("while the catalog's clock is a month ahead, nothing is deleted because of its age, and the log says so once")
  func doubtfulTime() async throws {
    // An hour, because other tests may have made this process's IDs, by which old recordings are found, ten hours
    // early.
    let hand = ManualClock()
    let bench = try TestBench { ($0.maximumAgeSeconds, $0.tenantMaximumAges, $0.clock) = (3600, [:], hand.clock) }
    let kept = try bench.recording()
    let created = try await bench.tus.send(.post, "/v1/uploads", ["Upload-Length": "4"])
    let upload = try #require(created.fields["Location"])
    bench.catalog.note(clock: .now)
    bench.catalog.note(clock: .now + 2_592_000)
    let retention = Retention(bench.context, bench.catalog)
    retention.start()
    await hand.idle()
    #expect(bench.logged.failures.contains { $0.contains("the catalog's clock may be wrong") })
    for _ in 0..<2 { await bench.context.uploads.removeExpired() }
    #expect(try bench.catalog.recording(kept.id) != nil)
    #expect(try await bench.tus.head(upload).status == 200)
    let patched = try await bench.tus.patch(upload, at: 0, "RI")
    #expect(patched.status == 204)
    #expect(bench.logged.failures.count == 1, "\(bench.logged.failures)")
    let metrics = try await bench.respond(.get, "/metrics").body.collect()
    #expect(String(decoding: metrics, as: UTF8.self).contains("\nstillwave_clock_doubtful 1\n"))
    let ready = try await bench.respond(.get, "/readyz")
    let text = String(decoding: try await ready.body.collect(), as: UTF8.self)
    #expect(ready.status == .ok && text.contains("\"clock_doubtful\"") && text.contains("s ahead of this machine's"))
    retention.stop()

    bench.catalog.note(clock: .now)
    let again = Retention(bench.context, bench.catalog)
    let old = try bench.catalog.update(kept.id) { $0.createdAt = .now + -7200 }
    #expect(old != nil)
    again.start()
    await hand.idle()
    #expect(try bench.catalog.recording(kept.id) == nil)
    again.stop()
    #expect(bench.logged.all.contains { $0.contains("what has reached its age is deleted again") })
  }

  @Test(
    "after a start with a clock that is a month ahead, nothing is deleted because of its age",
    arguments: [true, false])
  func wrongStart(isNoted: Bool) async throws {
    let bench = try TestBench { ($0.maximumAgeSeconds, $0.tenantMaximumAges) = (86_400, [:]) }
    let kept = try bench.recording()
    // The service ran a month ago, and the machine was started since. Without a note, as in a catalog that was rebuilt,
    // the newest recording says so.
    let month = Timestamp.now + -2_592_000
    try bench.catalog.update(kept.id) { $0.createdAt = month }
    if isNoted {
      let memory = try JSONEncoder().encode(ClockMemory(heard: month.milliseconds, boot: "another", sinceBoot: 0))
      try bench.catalog.check()
      try bench.catalog.write {
        try $0.run("UPDATE heartbeat SET clock = ?", [String(decoding: memory, as: UTF8.self)])
      }
    }
    #expect(try bench.context.deletionClock.time() == nil)
    let retention = Retention(bench.context, bench.catalog)
    retention.start()
    retention.stop()
    #expect(try bench.catalog.recording(kept.id) != nil)
    let ready = try await bench.respond(.get, "/readyz")
    let text = String(decoding: try await ready.body.collect(), as: UTF8.self)
    #expect(text.contains("later than when the service ran last"))
  }

  @Test("while the catalog's clock is doubted, a kept answer is repeated however old it seems")
  func doubtfulAnswer() async throws {
    let fields: HTTPFields = ["Idempotency-Key": "k"]
    bench.catalog.note(clock: .now)
    #expect(try await bench.respond(.post, "/v1/recordings", fields: fields, body: "RIFF").status == .created)
    bench.catalog.note(clock: .now + 2_592_000)
    let again = try await bench.respond(.post, "/v1/recordings", fields: fields, body: "RIFF")
    #expect(again.fields["Idempotency-Replayed"] == "true")
  }

  @Test("an upload expires by the catalog's clock")
  func expiry() async throws {
    let right = lead(by: 36_000)
    let answer = try await bench.tus.send(.post, "/v1/uploads", ["Upload-Length": "4"])
    #expect(answer.status == 201)
    let upload = try #require(try bench.catalog.unfinishedUploads().first)
    #expect(isNear(upload.expiresAt, right + bench.context.configuration.emptyUploadExpirySeconds))
    let head = try await bench.tus.head("/v1/uploads/\(upload.id)")
    #expect(head.status == 200)
  }
}
