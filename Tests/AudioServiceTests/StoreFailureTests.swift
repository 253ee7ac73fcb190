import Foundation
import HTTP
import Media
import PresentRows
import Terms
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Jobs whose source can't be fetched from the store of media, or whose result can't be put there.
@Suite struct StoreFailureTests {
  private static let outage = StorageError.storeUnreachable(detail: "no answer in time")
  private let bench: TestBench
  private let blobs: FailingStore

  private init(workers: Int = 1, pauseSeconds: Double = 0.001) throws {
    (bench, blobs) = try TestBench.failingStore {
      ($0.workerCount, $0.storePauseSeconds) = (workers, pauseSeconds)
    }
  }

  init() throws { try self.init(workers: 1) }

  private func job(_ bench: TestBench) throws -> Job {
    let id = JobID()
    let job = Job(id: id, kind: .waveform, recording: try bench.recording(state: .queued, job: id).id)
    try bench.catalog.insert(job)
    return job
  }

  @Test func aJobWhoseSourceTheStoreDoesNotGiveIsTriedUntilItDoesAndCountsNoFailure() async throws {
    blobs.fetching.withLock { $0 = (Self.outage, nil) }
    blobs.fetchFailures.withLock { $0 = 4 }
    let job = try job(bench)
    bench.runner.submit(job)
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .succeeded && ended.attempts == 5 && ended.postponements == 4)
    #expect(ended.losses == 0 && ended.notBefore == nil && bench.starts.count == 1)
    #expect(bench.logged.failures.count == 1, "one line a minute: \(bench.logged.failures)")
  }

  @Test func whileItWaitsItIsQueuedAndOthersRun() async throws {
    let slow = try Self(workers: 1, pauseSeconds: 1000)
    let (bench, blobs) = (slow.bench, slow.blobs)
    let waiting = try job(bench)
    blobs.fetching.withLock { $0 = (Self.outage, waiting.recording) }
    let other = try job(bench)
    bench.runner.submit(waiting)
    bench.runner.submit(other)
    #expect(try await bench.finished(other.id).state == .succeeded)
    let row = try #require(try bench.catalog.job(waiting.id))
    #expect(row.state == .queued && row.attempts == 1 && row.failures == 0 && row.losses == 0)
    let early = try #require(row.notBefore).milliseconds - bench.catalog.time.milliseconds
    #expect(early > 600_000 && early <= 1_000_000)
    let answer = try await bench.respond(.get, "/v1/jobs/\(waiting.id)")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    #expect(text.contains("\"state\":\"queued\""))
    await bench.runner.stop()
    #expect(try bench.catalog.job(waiting.id) == row, "a stop changes nothing")
  }

  @Test(
    "a job fails after eleven attempts that the store or the catalog has failed, and says why",
    arguments: [
      (StorageError.storeFull, "media_full", 507), (.storeUnreachable(detail: "no answer"), "media_unavailable", 503),
      (.objectStore(detail: "the key may not do this"), "media_unavailable", 503),
      (.unreachable(detail: "no answer"), "catalog_unwritable", 503), (.busy, "catalog_unwritable", 503),
    ])
  func limit(error: StorageError, code: String, status: Int) async throws {
    blobs.putting.withLock { $0 = error }
    let job = try job(bench)
    bench.runner.submit(job)
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .failed && ended.attempts == 11 && ended.postponements == 10 && bench.starts.count == 11)
    let failure = try #require(RowJSON.value(JobError.self, from: ended.error))
    #expect(failure.code == code && failure.status == status)
    #expect(try bench.catalog.recording(job.recording)?.waveformState == .failed)
    #expect(!FileManager.default.fileExists(atPath: bench.store.workFolder(of: job.id)))
  }

  @Test func aPutThatAStopBreaksOffCountsAsNothingAndDelaysNothing() async throws {
    let slow = try Self(workers: 1, pauseSeconds: 1000)
    let (bench, gate) = (slow.bench, DispatchSemaphore(value: 0))
    slow.blobs.putting.withLock { $0 = .storeUnreachable(detail: "this node is stopping") }
    slow.blobs.gate.withLock { $0 = gate }
    let job = try job(bench)
    bench.runner.submit(job)
    try await bench.eventually { slow.blobs.puts.value > 0 }
    async let stopped: Void = bench.runner.stop()
    try await bench.eventually { bench.runner.queue.sync { bench.runner.state.value.isStopping } }
    gate.signal()
    await stopped
    let row = try #require(try bench.catalog.job(job.id))
    #expect(row.state == .queued && row.attempts == 1 && row.failures == 0 && row.losses == 0)
    #expect(try #require(row.notBefore) <= bench.catalog.time)
  }

  @Test func aJobWhoseSourceIsDamagedFailsAtOnce() async throws {
    let job = try job(bench)
    let audio = try #require(try bench.catalog.recording(job.recording)?.audioKey)
    blobs.fetching.withLock { $0 = (.damagedObject(key: "\(audio)"), nil) }
    bench.runner.submit(job)
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .failed && ended.attempts == 1 && ended.postponements == 0)
    #expect(RowJSON.value(JobError.self, from: ended.error)?.code == "audio_damaged")
  }

  @Test func thePausesTakeMoreThanHalfAnHourAndNoneIsLongerThanTenMinutes() {
    /// Gives the lowest number of each range. Zero would be rejected forever.
    struct Lowest: RandomNumberGenerator {
      mutating func next() -> UInt64 { 1 }
    }
    var (job, lowest, random) = (
      Job(kind: .waveform, recording: RecordingID()), Lowest(), SystemRandomNumberGenerator()
    )
    var total = 0.0
    for postponements in 0..<Job.postponementLimit {
      job.postponements = postponements
      total += job.postponementSeconds(first: Configuration().storePauseSeconds, using: &lowest)
      let seconds = job.postponementSeconds(first: Configuration().storePauseSeconds, using: &random)
      #expect((3...600).contains(seconds))
    }
    #expect(total > 1800)
  }

  @Test("a working copy that is damaged in the store is made again once a window of its samples is asked for")
  func damagedWorkingCopy() async throws {
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let key = ObjectKey(recording.id, "working.wav")
    try Data("copy".utf8).write(to: URL(filePath: bench.store.folder(of: recording.id) + "/working.wav"))
    let facts = MediaFacts(
      decodedInOrder: .m4a, codec: "aac", sampleRate: 1000, channels: 2, frames: 60_000, sampleBits: nil)
    _ = try bench.catalog.update(recording.id) { ($0.media, $0.workingKey, $0.workingBytes) = (facts.json, key, 4) }
    blobs.fetching.withLock { $0 = (.damagedObject(key: "\(key)"), nil) }
    let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/waveform?scale=16&end=1")
    #expect(response.status == .ok)
    let row = try #require(try bench.catalog.recording(recording.id))
    #expect(row.waveformState != .ready && row.waveformJob != nil, "it is built again, with its working copy")
  }
}
