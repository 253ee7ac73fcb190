import Foundation
import PresentRows
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct DeletionTests {
  private let folder: TemporaryFolder
  let catalog: Catalog
  let source = sample("source")

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
    try catalog.insert(source)
  }

  /// Returns a recording that a job in the given state produces from `source`.
  private func derive(_ name: String, _ state: JobState) throws -> (recording: Recording, job: Job) {
    var output = sample(name)
    let job = Job(kind: .denoise, recording: source.id, output: output.id, state: state)
    output.derivedFrom = Derivation(recording: source.id, job: job.id, operation: "denoise")
    try catalog.insert(output, jobs: [job])
    return (output, job)
  }

  @Test("deleting a source keeps finished results, deletes unfinished ones, and cancels their jobs")
  func deletionOfSource() throws {
    let done = try derive("done", .succeeded)
    let running = try derive("running", .running)
    let queued = try derive("queued", .queued)
    let other = sample("other")
    let otherJob = Job(kind: .waveform, recording: other.id)
    try catalog.insert(other, jobs: [otherJob])

    let cancelled = try #require(try catalog.deleteRecording(source.id))

    #expect(Set(cancelled.map(\.id)) == [running.job.id, queued.job.id])
    #expect(Set(cancelled.compactMap(\.output)) == [running.recording.id, queued.recording.id])
    #expect(cancelled.allSatisfy { $0.state == .cancelled && $0.finishedAt != nil })
    for job in cancelled { #expect(try catalog.job(job.id) == job) }
    #expect(try catalog.recordings(limit: 9).map(\.name) == ["other", "done"])
    #expect(try catalog.recording(done.recording.id) == done.recording)
    #expect(try catalog.job(done.job.id) == done.job)
    #expect(try catalog.unfinishedJobs() == [otherJob])
  }

  @Test("deleting an unfinished result cancels its job and keeps the source")
  func deletionOfUnfinishedResult() throws {
    let running = try derive("running", .running)
    let cancelled = try catalog.deleteRecording(running.recording.id)
    #expect(cancelled?.map(\.id) == [running.job.id])
    #expect(try catalog.recordings(limit: 9) == [source])
  }

  @Test("results derived from an unfinished result are deleted with it")
  func chain() throws {
    let first = try derive("first", .running)
    var second = sample("second")
    let job = Job(kind: .denoise, recording: first.recording.id, output: second.id)
    second.derivedFrom = Derivation(recording: first.recording.id, job: job.id, operation: "denoise")
    try catalog.insert(second, jobs: [job])
    #expect(try catalog.deleteRecording(source.id)?.map(\.id) == [first.job.id, job.id])
    #expect(try catalog.recordings(limit: 9).isEmpty)
  }

  @Test("finished jobs of a deleted recording stay unchanged")
  func finishedJobs() throws {
    let job = Job(kind: .waveform, recording: source.id, state: .succeeded, progress: 1)
    try catalog.insert(job)
    #expect(try catalog.deleteRecording(source.id) == [])
    #expect(try catalog.job(job.id) == job)
    #expect(try catalog.jobs(recording: source.id, limit: 9) == [job])
  }

  @Test(
    "old recordings go, except for those that an unfinished job reads or makes", arguments: [JobState.queued, .running])
  func retention(state: JobState) throws {
    let (done, unfinished) = (try derive("done", .succeeded), try derive("unfinished", state))
    let other = sample("other")
    try catalog.insert(other)
    let later = Timestamp(milliseconds: Timestamp.now.milliseconds + 86_400_000)
    #expect(
      Set(try catalog.deleteRecordings(createdBefore: later, limit: 9).map(\.id)) == [
        done.recording.id, other.id,
      ])
    #expect(try catalog.recording(source.id) != nil && catalog.recording(unfinished.recording.id) != nil)
    try catalog.update(unfinished.job.id) { $0.state = .failed }
    #expect(
      Set(try catalog.deleteRecordings(createdBefore: later, limit: 9).map(\.id)) == [
        source.id, unfinished.recording.id,
      ])
  }

  @Test("a missing recording can't be deleted, nor one twice")
  func deletionOfNothing() throws {
    #expect(try catalog.deleteRecording(RecordingID()) == nil)
    #expect(try catalog.deleteRecording(source.id) != nil)
    #expect(try catalog.deleteRecording(source.id) == nil)
  }

  @Test("a job that reports after its recording was deleted changes nothing")
  func lateReport() throws {
    let running = try derive("running", .running)
    _ = try catalog.deleteRecording(source.id)
    let job = try catalog.update(running.job.id) { if !$0.state.isFinished { $0.progress = 0.5 } }
    #expect(job?.state == .cancelled && job?.progress == 0)
    #expect(try catalog.update(running.recording.id) { $0.audioKey = ObjectKey($0.id, "audio.wav") } == nil)
  }
}

/// What SQLite leaves of deleted rows in its file.
@Suite struct DeletedFragmentTests {
  @Test("however many names there are, no piece of a deleted one is left in the index")
  func fragments() throws {
    let folder = try TemporaryFolder()
    let catalog = try Catalog(path: folder("catalog.sqlite"))
    let source = sample("source")
    try catalog.insert(source)
    try catalog.write { db in
      // 25,000 rows in several parts of the index.
      for part in 0..<5 {
        try db.run(
          """
          INSERT INTO recording_names (rowid, name)
          WITH RECURSIVE n (k) AS (SELECT ? UNION ALL SELECT k + 1 FROM n LIMIT 5000)
          SELECT k, printf('interview %05d', k) FROM n
          """, [1 + part * 5000])
      }
    }
    let named = sample("Qwxyzkj")
    try catalog.insert(named)
    func pieces() throws -> [String] {
      try catalog.checkpoint()
      let bytes = try Data(contentsOf: URL(fileURLWithPath: folder("catalog.sqlite")))
      return ["qwx", "wxy", "xyz", "yzk", "zkj"].filter { bytes.firstRange(of: Data($0.utf8)) != nil }
    }
    #expect(try pieces().count == 5)
    _ = try catalog.deleteRecording(named.id)
    #expect(try !pieces().isEmpty)
    try catalog.eraseTraces(pagesAtOnce: 20)
    #expect(try pieces() == [])
    #expect(try catalog.recordings(limit: 9, nameContaining: "source").map(\.id) == [source.id])
  }
}
