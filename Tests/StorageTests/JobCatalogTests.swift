import Foundation
import PresentRows
import Randomness
import Terms
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct JobCatalogTests {
  let folder: TemporaryFolder
  let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
  }

  @Test("a job is read as it was inserted, with every field set or none")
  func roundTrip() throws {
    let source = sample()
    try catalog.insert(source)
    let full = Job(
      kind: .denoise, recording: source.id, output: RecordingID(), state: .failed, progress: 0.37,
      createdAt: Timestamp(milliseconds: 1), startedAt: Timestamp(milliseconds: 2),
      finishedAt: Timestamp(milliseconds: 3), attempts: 3, interruptions: 1, nonce: "0123456789abcdef",
      node: "a/b", leaseUntil: Timestamp(milliseconds: 4), parameters: #"{"noise":"auto"}"#, result: "{}",
      error: #"{"code":"x"}"#)
    for job in [full, Job(kind: .convert, recording: source.id)] {
      try catalog.insert(job)
      #expect(try catalog.job(job.id) == job)
    }
    #expect(try catalog.job(JobID()) == nil)
  }

  @Test("a job on a missing recording is refused")
  func noSource() throws {
    let job = Job(kind: .denoise, recording: RecordingID())
    let error = StorageError.noSuchRecording(job.recording)
    #expect(throws: error) { try catalog.insert(job) }
    #expect(throws: error) { try catalog.insert(sample(), jobs: [job]) }
    #expect(try catalog.jobs(limit: 9).isEmpty)
    #expect(try catalog.recordings(limit: 9).isEmpty)
  }

  @Test("jobs are listed newest first by state and by source, page by page")
  func listing() throws {
    let (a, b) = (sample("a"), sample("b"))
    try catalog.insert(a)
    try catalog.insert(b)
    let jobs = (0..<6).map { index in
      Job(kind: .waveform, recording: index % 2 == 0 ? a.id : b.id, state: index < 4 ? .failed : .queued)
    }
    var random = TestRandom(for: 1)
    for job in jobs.shuffled(using: &random) { try catalog.insert(job) }
    func listed(_ found: [Job]) -> [Int] { found.compactMap { jobs.firstIndex(of: $0) } }
    #expect(listed(try catalog.jobs(limit: 9)) == [5, 4, 3, 2, 1, 0])
    #expect(listed(try catalog.jobs(state: .failed, limit: 9)) == [3, 2, 1, 0])
    #expect(listed(try catalog.jobs(recording: a.id, limit: 9)) == [4, 2, 0])
    #expect(listed(try catalog.jobs(state: .failed, recording: a.id, limit: 9)) == [2, 0])
    #expect(listed(try catalog.jobs(state: .failed, recording: b.id, limit: 1, before: jobs[3].id)) == [1])
    #expect(listed(try catalog.jobs(limit: 2, before: jobs[4].id)) == [3, 2])
    #expect(try catalog.jobs(state: .running, limit: 9).isEmpty)
  }

  @Test("a rebuilt waveform and its job are inserted together")
  func insertionWithSource() throws {
    let source = sample()
    try catalog.insert(source)
    let job = Job(kind: .waveform, recording: source.id)
    let changed = try catalog.update(source.id, if: { $0 == source }, inserting: job) { $0.waveformJob = job.id }
    #expect(changed?.waveformJob == job.id)
    #expect(try catalog.recording(source.id) == changed)
    #expect(try catalog.job(job.id) == job)
    // Another update came first: nothing changes, and the job isn't inserted.
    let late = Job(kind: .waveform, recording: source.id)
    #expect(try catalog.update(source.id, if: { $0 == source }, inserting: late) { $0.waveformJob = late.id } == nil)
    #expect(try catalog.recording(source.id) == changed && catalog.job(late.id) == nil)
  }

  /// Begins an attempt at a job.
  private func claim(_ job: Job) throws -> AttemptToken { try #require(try catalog.claim(job.id).written?.token) }

  @Test("a job and its recording are finished together")
  func finish() throws {
    let source = sample()
    let job = Job(kind: .waveform, recording: source.id)
    try catalog.insert(source, jobs: [job])
    let ended = try catalog.finish(try claim(job), with: "{}") { $0.waveformState = .ready }
    #expect(ended.written?.state == .succeeded && ended.written?.result == "{}")
    #expect(try catalog.job(job.id) == ended.written)
    #expect(try catalog.recording(source.id)?.waveformState == .ready)
    let missing = AttemptToken(job: JobID(), attempt: 1, nonce: AttemptToken.newNonce())
    #expect(try catalog.finish(missing, with: "{}").written == nil)
  }

  @Test("a waveform fails with its own job, in the same transaction", arguments: [true, false])
  func abandonedWaveform(isItsOwn: Bool) throws {
    let id = JobID()
    let recording = Recording(
      id: RecordingID(), name: "a.wav",
      format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 8000, channels: 1, frames: 1),
      waveformState: .building, waveformJob: isItsOwn ? id : JobID())
    try catalog.insert(recording, jobs: [Job(id: id, kind: .waveform, recording: recording.id)])
    let writes = catalog.changeCount
    _ = try catalog.failUnclaimed(id, error: "{}")
    #expect(try catalog.recording(recording.id)?.waveformState == (isItsOwn ? .failed : .building))
    #expect(catalog.changeCount == writes + 1)
  }

  @Test("a job that fails or is canceled takes its unfinished output along, but a finished one doesn't")
  func abandonment() throws {
    let (source, output) = (sample("source"), sample("output"))
    let job = Job(kind: .denoise, recording: source.id, output: output.id)
    let waveform = Job(kind: .waveform, recording: output.id)
    try catalog.insert(source)
    try catalog.insert(output, jobs: [job, waveform])
    let ended = try catalog.fail(try claim(job), error: "{}", progress: 0.5).written
    #expect(ended?.map(\.id) == [job.id, waveform.id])
    #expect(ended?.map(\.state) == [.failed, .cancelled])
    #expect(try catalog.recordings(limit: 9).map(\.name) == ["source"])

    let kept = sample("kept")
    let done = Job(kind: .denoise, recording: source.id, output: kept.id, state: .succeeded)
    try catalog.insert(kept, jobs: [done])
    #expect(try catalog.cancel(done.id) == [done])
    #expect(try catalog.job(done.id) == done)
    #expect(try catalog.recording(kept.id) != nil)
    #expect(try catalog.cancel(JobID()) == nil)
  }

  @Test("only the last three states are final")
  func finality() {
    #expect(JobState.allCases.filter(\.isFinished) == [.succeeded, .failed, .cancelled])
  }
}
