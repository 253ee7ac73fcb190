import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

/// The transitions of a job's lease as transactions; `LeaseSimulationTests` checks the transitions themselves.
@Suite(.onEveryEngine) struct LeaseCatalogTests {
  private let folder: TemporaryFolder
  private let clock = TestClock()
  private let store: MediaStore
  private var path: String { store.catalogPath }

  init() throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder("data"))
  }

  /// Opens the catalog as another process would, with or without the lock.
  private func node(locked: Bool = false, grace: Double = 3600) throws -> Catalog {
    let terms = LeaseHolder.Terms(graceSeconds: grace)
    return try Catalog(
      at: path, holder: LeaseHolder(name: "node", terms: locked ? nil : terms, now: { [clock] in clock.now() }))
  }

  private func insertJob(_ catalog: Catalog) throws -> Job {
    let id = JobID()
    let recording = sample(job: id)
    let job = Job(id: id, kind: .waveform, recording: recording.id)
    try catalog.insert(recording, jobs: [job])
    return job
  }

  private func claim(_ job: Job, _ catalog: Catalog) throws -> AttemptToken {
    try #require(try catalog.claim(job.id).written?.token)
  }

  private func endings(_ job: Job, _ catalog: Catalog) throws -> [AttemptEnding] {
    try catalog.attempts(of: job.id).map(\.ending)
  }

  @Test("a claim counts an attempt, marks the waveform, and is written before any file")
  func claim() throws {
    let catalog = try node()
    let job = try insertJob(catalog)
    let claimed = try #require(try catalog.claim(job.id, building: { $0.recording }).written)
    #expect(claimed.job.state == .running && claimed.job.attempts == 1 && claimed.job.node == catalog.holder.node)
    #expect(claimed.job.leaseUntil == clock.now() + 30 && claimed.source.id == job.recording)
    #expect(try catalog.job(job.id) == claimed.job && claimed.job.token == claimed.token)
    #expect(try catalog.recording(job.recording)?.waveformState == .building)
    let row = try #require(try catalog.read { try $0.row("SELECT * FROM attempts") })
    #expect(row["nonce"] == .text(claimed.token.nonce) && row["folder"] == .text(job.recording.text))
    #expect(row["ending"] == .null)
  }

  @Test("a postponed job is begun by no node before its time, and that counts neither as a failure nor as a loss")
  func postponed() throws {
    let (first, second) = (try node(), try node())
    let job = try insertJob(first)
    let token = try claim(job, first)
    #expect(try first.postpone(token, seconds: 60, hasWritten: true).written?.state == .queued)
    let row = try #require(try second.job(job.id))
    #expect(row.failures == 0 && row.losses == 0 && row.postponements == 1 && row.notBefore == clock.now() + 60)
    #expect(try endings(job, first) == [.interrupted])
    for seconds in [0.0, 59.9] {
      clock.advance(seconds)
      for catalog in [first, second] {
        guard case .refused(let now) = try catalog.claim(job.id) else {
          Issue.record("claimed too early")
          return
        }
        #expect(now?.state == .queued && now?.notBefore == row.notBefore)
      }
    }
    #expect(try first.postpone(token, seconds: 60).written == nil, "the attempt has ended")
    clock.advance(0.1)
    let later = try claim(job, second)
    #expect(try later.attempt == 2 && second.job(job.id)?.notBefore == nil)
  }

  @Test("a job is claimed by one node at a time")
  func oneHolder() throws {
    let (first, second) = (try node(), try node())
    #expect(first.holder.node != second.holder.node)
    let job = try insertJob(first)
    _ = try claim(job, first)
    guard case .refused(let now) = try second.claim(job.id) else {
      Issue.record("claimed twice")
      return
    }
    #expect(now?.state == .running)
    #expect(try first.claim(JobID()).written == nil)
  }

  @Test(
    "a node that couldn't write how its attempt ended may claim the job again, which counts as a failure if it was one",
    arguments: [true, false])
  func unknownEnd(hasFailed: Bool) throws {
    let catalog = try node()
    let job = try insertJob(catalog)
    let first = try claim(job, catalog)
    let claimed = try catalog.claim(job.id, failed: hasFailed ? first.attempt : nil).written
    let second = try #require(claimed?.token)
    #expect(second.attempt == 2 && second.nonce != first.nonce)
    let row = try #require(try catalog.job(job.id))
    #expect(row.failures == (hasFailed ? 1 : 0) && row.losses == (hasFailed ? 0 : 1))
    #expect(try endings(job, catalog) == [hasFailed ? .failed : .interrupted])
    #expect(try catalog.finish(first, with: "{}").written == nil)
    // The failure of an earlier attempt isn't that of one that was begun since.
    let third = try #require(try catalog.claim(job.id, failed: first.attempt).written)
    #expect(third.job.failures == row.failures && third.job.losses == row.losses + 1)
  }

  @Test("a lease that is renewed lasts; one that isn't ends, and then nothing of its attempt is accepted")
  func expiry() throws {
    let (first, second) = (try node(), try node())
    let job = try insertJob(first)
    let lost = try claim(job, first)
    for _ in 0..<3 {
      clock.advance(29)
      #expect(try first.renew(lost) && second.endLostLeases() == 0)
    }
    clock.advance(31)
    #expect(try second.endLostLeases() == 1)
    let queued = try #require(try first.job(job.id))
    #expect(queued.state == .queued && queued.interruptions == 1 && queued.failures == 0 && queued.leaseUntil == nil)
    let holding = try claim(job, second)
    let before = try first.job(job.id)
    #expect(try !first.renew(lost))
    #expect(try first.finish(lost, with: "{}") { $0.waveformState = .ready }.written == nil)
    #expect(try first.fail(lost, error: "{}", progress: 1).written == nil)
    for interrupted in [true, false] {
      #expect(try first.giveBack(lost, interrupted: interrupted).written == nil)
    }
    #expect(try first.job(job.id) == before)
    #expect(try first.recording(job.recording)?.waveformState == .queued)
    #expect(try second.finish(holding, with: "{}").written?.hasWon(holding) == true)
    // A repeated write learns that its attempt has won.
    guard case .refused(let now?) = try second.finish(holding, with: "{}") else {
      Issue.record("finished twice")
      return
    }
    #expect(now.hasWon(holding) && !now.hasWon(lost))
    #expect(try endings(job, second) == [.interrupted, .succeeded])
  }

  @Test("under the lock, a lease lasts as long as its process, and a start ends those of others")
  func locked() throws {
    let first = try node(locked: true)
    let (job, waiting) = (try insertJob(first), try insertJob(first))
    let token = try claim(job, first)
    #expect(try first.job(job.id)?.leaseUntil == nil)
    clock.advance(1e6)
    let writes = first.changeCount
    #expect(try first.endLostLeases() == 0 && first.changeCount == writes)
    #expect(try first.job(job.id)?.token == token)
    // Another process has the lock now.
    let second = try node(locked: true)
    #expect(try second.endLostLeases() == 1)
    #expect(try second.job(job.id)?.state == .queued && second.job(job.id)?.interruptions == 1)
    #expect(try second.job(waiting.id)?.interruptions == 0)
    #expect(try second.unfinishedJobs().count == 2)
  }

  @Test("a canceled job refuses its attempt")
  func cancelled() throws {
    let catalog = try node()
    let (job, other) = (try insertJob(catalog), try insertJob(catalog))
    let (token, otherToken) = (try claim(job, catalog), try claim(other, catalog))
    #expect(try catalog.cancel(job.id, progress: 0.5)?.first?.progress == 0.5)
    _ = try catalog.deleteRecording(other.recording)
    for (job, token) in [(job, token), (other, otherToken)] {
      #expect(try catalog.finish(token, with: "{}").written == nil)
      #expect(try catalog.job(job.id)?.state == .cancelled && endings(job, catalog) == [.cancelled])
    }
  }

  // MARK: Garbage

  /// Writes a file of an attempt into the recording's folder.
  private func write(_ kind: String, of token: AttemptToken, to id: RecordingID) throws -> String {
    let name = "\(kind)-\(token.name).x"
    try store.makeFolder(of: id)
    try StorageTests.write("text", to: store.folder(of: id) + "/" + name)
    return name
  }

  private func names(of job: Job) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: store.folder(of: job.recording)).filter { $0 != "unfinished" }
      .sorted()
  }

  @Test("files of an attempt that was lost are removed after a while, and those of the result stay")
  func lostFiles() throws {
    let catalog = try node(grace: 100)
    let job = try insertJob(catalog)
    let lost = try claim(job, catalog)
    let stray = try write("waveform", of: lost, to: job.recording)
    clock.advance(31)
    #expect(try catalog.endLostLeases() == 1)
    let token = try claim(job, catalog)
    let result = try write("waveform", of: token, to: job.recording)
    _ = try catalog.finish(token, with: "{}") { $0.waveformKey = ObjectKey($0.id, result) }
    let blobs = Blobs(store, of: catalog)
    #expect(try blobs.removeGarbage(of: catalog) == 0)
    #expect(try names(of: job) == [stray, result].sorted())
    clock.advance(100)
    #expect(try blobs.removeGarbage(of: catalog) == 1 && blobs.removeGarbage(of: catalog) == 0)
    #expect(try names(of: job) == [result])
    #expect(try catalog.dueGarbage().isEmpty)
  }

  @Test("an attempt that ended before it wrote a result leaves nothing to look for")
  func nothingWritten() throws {
    let catalog = try node(locked: true)
    let job = try insertJob(catalog)
    _ = try catalog.giveBack(try claim(job, catalog), interrupted: false)
    #expect(try catalog.dueGarbage().isEmpty && endings(job, catalog) == [.failed])
    let token = try claim(job, catalog)
    _ = try catalog.fail(token, error: "{}", progress: 0, hasWritten: true)
    #expect(try catalog.dueGarbage() == [.files(of: token, folder: job.recording)])
  }

  @Test("a file that a result replaces is removed an hour later")
  func replaced() throws {
    let catalog = try node(locked: true)
    let first = try insertJob(catalog)
    let token = try claim(first, catalog)
    let old = try write("working", of: token, to: first.recording)
    _ = try catalog.finish(token, with: "{}") { $0.workingKey = ObjectKey($0.id, old) }
    let job = Job(kind: .waveform, recording: first.recording)
    try catalog.insert(job)
    let next = try claim(job, catalog)
    let new = try write("working", of: next, to: first.recording)
    _ = try catalog.finish(next, with: "{}") { $0.workingKey = ObjectKey($0.id, new) }
    let blobs = Blobs(store, of: catalog)
    #expect(try blobs.removeGarbage(of: catalog) == 0)
    clock.advance(3601)
    #expect(try blobs.removeGarbage(of: catalog) == 1)
    #expect(try names(of: first) == [new])
  }

  @Test("files of a recording whose row can't be read stay, and others are removed nevertheless")
  func unreadableRow() throws {
    let catalog = try node(locked: true)
    let jobs = [try insertJob(catalog), try insertJob(catalog)]
    for job in jobs {
      let token = try claim(job, catalog)
      _ = try write("waveform", of: token, to: job.recording)
      _ = try catalog.fail(token, error: "{}", progress: 0, hasWritten: true)
    }
    let damage = "UPDATE recordings SET waveform_state = ? WHERE id = ?"
    _ = try catalog.engine.write(.statementLocks) { try $0.run(damage, ["odd", jobs[0].recording.text]) }
    #expect(try Blobs(store, of: catalog).removeGarbage(of: catalog) == 1)
    #expect(try names(of: jobs[0]).count == 1 && names(of: jobs[1]).isEmpty)
    _ = try catalog.engine.write(.statementLocks) { try $0.run(damage, ["failed", jobs[0].recording.text]) }
    #expect(try Blobs(store, of: catalog).removeGarbage(of: catalog) == 1)
    #expect(try names(of: jobs[0]).isEmpty)
  }

  @Test("a name in the table that is no file of a recording is ignored")
  func oddNames() throws {
    let catalog = try node(locked: true)
    try catalog.write { db in
      for name in ["/etc/passwd", "recordings/x/y", "recordings/\(RecordingID())/../../catalog.sqlite", ""] {
        try db.run("INSERT INTO garbage (object, due) VALUES (?, 0)", [name])
      }
    }
    #expect(try catalog.dueGarbage().isEmpty)
    #expect(try Blobs(store, of: catalog).removeGarbage(of: catalog) == 0)
  }
}
