import HTTP
import PresentRows
import Synchronization
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Changes of which the service doesn't know if they were or will be committed, because a standby answers late or the
/// server has crashed.
@Suite struct UncertainCommitTests {
  /// Says that the outcome of each transaction is unknown while `waits`, and of as many as it `forgets`, which it
  /// commits. Those after them `fail`, if wanted.
  private final class WaitingEngine: PassingEngine {
    let engine: any SQLEngine
    let waits = Atomic(false)
    let forgets = Atomic(0)
    let fails = Atomic(false)

    init(_ engine: any SQLEngine) { self.engine = engine }

    func write<Value: Sendable>(
      _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
    ) throws(StorageError) -> Value {
      guard !waits.load(ordering: .relaxed) else { throw .outcomeUnknown }
      if fails.load(ordering: .relaxed), forgets.load(ordering: .relaxed) == 0 { throw .unreachable(detail: "") }
      let value = try engine.write(isolation, body)
      guard forgets.load(ordering: .relaxed) > 0 else { return value }
      forgets.subtract(1, ordering: .relaxed)
      throw .outcomeUnknown
    }
  }

  private func bench() throws -> (TestBench, WaitingEngine) {
    let made = Mutex<WaitingEngine?>(nil)
    let bench = try TestBench(engine: { engine in
      let waiting = WaitingEngine(engine)
      made.withLock { $0 = waiting }
      return waiting
    })
    return (bench, try #require(made.withLock { $0 }))
  }

  @Test("if it is unknown whether a recording's row was committed, its sound is kept")
  func soundIsKept() async throws {
    let (bench, engine) = try bench()
    engine.waits.store(true, ordering: .relaxed)
    let response = try await bench.respond(.post, "/v1/recordings", body: "RIFF")
    #expect(response.status == .internalServerError)
    await bench.runner.stop()
    let kept = try bench.store.recordingFolders()
    #expect(kept.count == 1)
    for id in kept { #expect(try bench.store.fileNames(of: id).contains("audio.wav")) }
  }

  @Test("a deletion that was committed after all is answered as one")
  func deletion() async throws {
    let (bench, engine) = try bench()
    let recording = try bench.recording()
    engine.forgets.store(1, ordering: .relaxed)
    let response = try await bench.respond(.delete, "/v1/recordings/\(recording.id)")
    #expect(response.status == .noContent)
    #expect(try bench.store.recordingFolders() == [])
  }

  @Test("a deletion that was committed counts only once later commits are possible")
  func unconfirmedDeletion() async throws {
    let (bench, engine) = try bench()
    let recording = try bench.recording()
    engine.forgets.store(1, ordering: .relaxed)
    engine.fails.store(true, ordering: .relaxed)
    let response = try await bench.respond(.delete, "/v1/recordings/\(recording.id)")
    #expect(response.status == .internalServerError)
    engine.fails.store(false, ordering: .relaxed)
    #expect(try bench.catalog.recording(recording.id) == nil)
  }

  @Test("a deletion of which nothing is known yet is no success, and the recording stays")
  func openDeletion() async throws {
    let (bench, engine) = try bench()
    let recording = try bench.recording()
    engine.waits.store(true, ordering: .relaxed)
    let response = try await bench.respond(.delete, "/v1/recordings/\(recording.id)")
    #expect(response.status == .internalServerError)
    engine.waits.store(false, ordering: .relaxed)
    #expect(try bench.catalog.recording(recording.id) != nil)
    #expect(try bench.store.recordingFolders() == [recording.id])
  }

  @Test(
    "a job whose beginning is unknown begins again, and fails only if that happens ten times",
    arguments: [(4, JobState.succeeded), (10, .failed)])
  func beginning(count: Int, state: JobState) async throws {
    let (bench, engine) = try bench()
    let id = JobID()
    let job = Job(id: id, kind: .waveform, recording: try bench.recording(state: .queued, job: id).id)
    try bench.catalog.insert(job)
    engine.forgets.store(count, ordering: .relaxed)
    bench.runner.submit(job)
    let ended = try await bench.finished(job.id)
    #expect(ended.state == state && ended.attempts == count + 1 && ended.losses == count)
    #expect(ended.failures == 1, "the last one is the one that ended it")
    #expect(bench.starts.count == (state == .failed ? 0 : 1))
    let error = RowJSON.value(JobError.self, from: ended.error)
    #expect(error?.detail.contains("damaged") != true, "nothing has run: \(error?.detail ?? "")")
  }
}
