import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

/// Leases of keys and webhooks between processes that share a catalog.
@Suite(.onEveryEngine) struct SharedLeaseTests {
  private let folder: TemporaryFolder
  private let clock = TestClock()
  private let one, two: Catalog

  init() throws {
    folder = try TemporaryFolder()
    let path = folder("catalog.sqlite")
    let nodes = try ["one", "two"].map { [clock] name in
      try Catalog(at: path, holder: LeaseHolder(name: name, terms: .init(), now: { clock.now() }))
    }
    (one, two) = (nodes[0], nodes[1])
  }

  private func answer(_ location: String) -> StoredResponse {
    StoredResponse(scope: "s", key: "k", fingerprint: "f", status: 201, location: location, body: "{}")
  }

  @Test("a key that one process holds is in use for another until it is given back, and then has its answer")
  func keys() throws {
    let (first, second) = (one.of(.none), two.of(.none))
    #expect(try first.holdKey(scope: "s", key: "k") == .held(nil))
    #expect(try second.holdKey(scope: "s", key: "k") == .inUse)
    #expect(try second.holdKey(scope: "s", key: "other") == .held(nil))
    #expect(try two.of(Tenant(stored: "t")).holdKey(scope: "s", key: "k") == .held(nil), "tenants have their own")
    try second.releaseKey(scope: "s", key: "k")
    #expect(try second.holdKey(scope: "s", key: "k") == .inUse, "only the holder gives it back")
    try first.releaseKey(scope: "s", key: "k")
    #expect(try second.holdKey(scope: "s", key: "k") == .held(nil), "a refusal isn't stored")
    try second.insert(sample(), answer: answer("/there"))
    guard case .held(let kept?) = try first.holdKey(scope: "s", key: "k") else {
      Issue.record("the answer that was stored is found")
      return
    }
    #expect(kept.location == "/there")
  }

  @Test("a key whose process has died can be taken over, and then the dead one's request does nothing")
  func takenOver() throws {
    let (first, second) = (one.of(.none), two.of(.none))
    #expect(try first.holdKey(scope: "s", key: "k") == .held(nil))
    clock.advance(29)
    try one.renewKeys()
    clock.advance(29)
    #expect(try second.holdKey(scope: "s", key: "k") == .inUse, "it was renewed")
    clock.advance(2)
    #expect(try second.holdKey(scope: "s", key: "k") == .held(nil))
    #expect(throws: StorageError.keyIsLost) { try first.insert(sample(), answer: answer("/first")) }
    #expect(try one.recordings(limit: 9).isEmpty)
    try second.insert(sample(), answer: answer("/second"))
    #expect(throws: StorageError.keyIsLost) { try first.insert(sample(), answer: answer("/first")) }
    #expect(try one.recordings(limit: 9).count == 1)
  }

  @Test("keys of processes that are gone are deleted together with old answers")
  func forgotten() throws {
    #expect(try one.of(.none).holdKey(scope: "s", key: "k") == .held(nil))
    try one.removeAnswers(before: clock.now())
    #expect(try two.of(.none).holdKey(scope: "s", key: "k") == .inUse)
    try one.removeAnswers(before: clock.now() + 3600)
    #expect(try one.read { try $0.first("SELECT count(*) FROM held_keys", as: Int.self) } == 0)
  }

  @Test("a process that has the catalog to itself holds no keys")
  func alone() throws {
    let alone = try Catalog(at: folder("alone.sqlite"))
    #expect(!alone.isShared && one.isShared && one.keyRenewalSeconds == 5)
    try alone.of(.none).insert(sample(), answer: answer("/alone"))
    #expect(try alone.of(.none).answer(scope: "s", key: "k")?.location == "/alone")
  }

  private func dueWebhook() throws -> JobID {
    let recording = sample()
    let job = Job(kind: .waveform, recording: recording.id, state: .succeeded, finishedAt: .now)
    try one.insert(
      recording, jobs: [job], webhooks: [Webhook(job: job.id, url: "https://a.example/", notBefore: clock.now())])
    return job.id
  }

  @Test("a webhook is called by one process at a time, and by another one after the first has died")
  func webhooks() throws {
    let job = try dueWebhook()
    #expect(try two.dueWebhooks(limit: 9).map(\.job) == [job])
    #expect(try one.claimWebhook(of: job, forSeconds: 30)?.attempts == 0)
    #expect(try two.claimWebhook(of: job, forSeconds: 30) == nil && two.dueWebhooks(limit: 9).isEmpty)
    clock.advance(31)
    #expect(try two.dueWebhooks(limit: 9).map(\.job) == [job])
    var claimed = try #require(try two.claimWebhook(of: job, forSeconds: 30))
    claimed.attempts += 1
    // The first one comes back, and changes nothing.
    try one.release(Webhook(job: job, url: "", attempts: 7, notBefore: .now), pauseSeconds: 0)
    try one.removeWebhook(of: job)
    #expect(try one.claimWebhook(of: job, forSeconds: 30) == nil && two.webhooks().count == 1)
    try two.release(claimed, pauseSeconds: 10)
    #expect(try one.claimWebhook(of: job, forSeconds: 30) == nil && one.dueWebhooks(limit: 9).isEmpty, "it pauses")
    clock.advance(10)
    #expect(try one.claimWebhook(of: job, forSeconds: 30)?.attempts == 1)
    try one.removeWebhook(of: job)
    #expect(try two.claimWebhook(of: job, forSeconds: 30) == nil && two.webhooks().isEmpty)
  }

  @Test("a webhook of a job that hasn't ended isn't due")
  func unfinished() throws {
    let recording = sample()
    let job = Job(kind: .waveform, recording: recording.id)
    try one.insert(
      recording, jobs: [job], webhooks: [Webhook(job: job.id, url: "https://a.example/", notBefore: clock.now())])
    #expect(try two.dueWebhooks(limit: 9).isEmpty)
  }

  @Test("records of attempts are deleted a day after their end, if no file of theirs is left")
  func attempts() throws {
    let recording = sample()
    let jobs = (0..<3).map { _ in Job(kind: .waveform, recording: recording.id) }
    try one.insert(recording, jobs: jobs)
    let tokens = try jobs.map { try #require(try one.claim($0.id).written?.token) }
    _ = try one.finish(tokens[0], with: "{}")
    _ = try one.fail(tokens[1], error: "{}", progress: 0, hasWritten: true)
    func count() throws -> Int? { try one.read { try $0.first("SELECT count(*) FROM attempts", as: Int.self) } }
    clock.advance(86_399)
    #expect(try two.forgetAttempts() == 0 && count() == 3)
    clock.advance(2)
    #expect(try two.forgetAttempts() == 1 && count() == 2, "one has files, and one runs")
    try one.forget([.files(of: tokens[1], folder: recording.id)])
    #expect(try two.forgetAttempts() == 1 && count() == 1)
  }

  @Test("texts with U+0000, which PostgreSQL can't hold, are found as with any other")
  func zeroes() throws {
    let recording = sample()
    try one.insert(recording)
    let chunk = LabelChunk(start: 0, end: 9, texts: ["some\0thing"], labels: [0, 1])
    let track = LabelTrack(of: recording.id, name: "t", kind: .labels, language: nil, source: .upload)
    try one.insert(track, [chunk], limit: 9)
    for (text, count) in [("SOME\0", 1), ("\0", 1), ("thing", 1), ("some\0\0", 0)] {
      let matches = try #require(try one.labels(of: track.id, containing: text)).chunks.flatMap { $0.matches ?? [] }
      #expect(matches.count { $0 } == count, "\(text.debugDescription)")
    }
    for text in ["\0", "t\0alk", "talk\0"] { #expect(try one.recordings(limit: 9, nameContaining: text).isEmpty) }
  }
}
