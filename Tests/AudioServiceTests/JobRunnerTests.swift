import Foundation
import Synchronization
import Terms
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

@Suite struct JobRunnerTests {
  @Test func aJobThatSucceedsLeavesARecordingThatIsReadyAndNoWorkFolder() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .succeeded && ended.attempts == 1 && ended.progress == 1)
    let recording = try #require(try bench.catalog.recording(job.recording))
    #expect(recording.waveformState == .ready && recording.format.frames == 1000)
    let key = try #require(recording.waveformKey)
    #expect(FileManager.default.fileExists(atPath: bench.store.path(of: key)))
    #expect(!FileManager.default.fileExists(atPath: bench.store.workFolder(of: job.id)))
  }

  /// Nothing is written while a job runs: neither its progress nor a renewal of its lease.
  @Test func aJobTakesOneTransactionToBeginAndOneToEnd() async throws {
    let writes = Atomic(0)
    let bench = try TestBench(
      script: "progress 0.1; gate; progress 0.5; gate -2; progress 0.9; finish",
      engine: { WriteCounter($0) { writes.add(1, ordering: .relaxed) } })
    let job = try bench.waveformJob()
    try bench.makeGate(job.id, "-2")
    let other = try SQLiteConnection(bench.store.catalogPath)
    /// Changes with each transaction of another connection that has written something.
    func version() throws -> Int? { try other.first("PRAGMA data_version") }
    let (before, idle) = (writes.load(ordering: .relaxed), try version())
    bench.runner.submit(job)
    await bench.begun(job.id)
    let begun = try version()
    #expect(writes.load(ordering: .relaxed) == before + 1 && begun != idle)
    for (step, progress) in [("", 0.1), ("-2", 0.5)] {
      await bench.until(job.id) { $0?.fraction == progress }
      #expect(try writes.load(ordering: .relaxed) == before + 1 && version() == begun)
      try await bench.openGate(job.id, step)
    }
    #expect(try await bench.finished(job.id).state == .succeeded)
    #expect(try writes.load(ordering: .relaxed) == before + 2 && version() != begun)
  }

  @Test func noMoreChildrenRunAtOnceThanThereAreWorkers() async throws {
    let bench = try TestBench(script: "progress 0; gate; finish") { $0.workerCount = 2 }
    let jobs = try (0..<5).map { _ in try bench.waveformJob() }
    for job in jobs { bench.runner.submit(job) }
    for (index, job) in jobs.enumerated() {
      let expected = Set(jobs[index..<min(index + 2, jobs.count)].map(\.id))
      try await bench.eventually { Set(jobs.map(\.id).filter(bench.isRunning)) == expected }
      try await bench.eventually { bench.starts.count == index + expected.count }
      try await bench.openGate(job.id)
      #expect(try await bench.finished(job.id).state == .succeeded)
    }
  }

  @Test(
    "a child that dies is started three times in all, then its job fails",
    arguments: ["kill -9 $$", "exit 3", "failure io_error true", "exit 0", "kill -SEGV $$"])
  func deadlyJob(script: String) async throws {
    let bench = try TestBench(script: script)
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .failed && ended.attempts == 3)
    #expect(bench.starts == (1...3).map { "\(job.id) \($0)" })
    #expect(try bench.catalog.recording(job.recording)?.waveformState == .failed)
    let error = try #require(RowJSON.value(JobError.self, from: ended.error))
    #expect(error.status == 500 && error.code == (script.contains("io_error") ? "io_error" : "worker_failed"))
    #expect(!FileManager.default.fileExists(atPath: bench.store.workFolder(of: job.id)))
  }

  @Test func aStuckChildIsKilledAndItsJobRetried() async throws {
    let hand = ManualClock()
    let bench = try TestBench(script: "progress 0.$attempt; [ $attempt -gt 2 ] || exec sleep 1000; finish") {
      ($0.stallSeconds, $0.clock) = (1e6, hand.clock)
    }
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    for attempt in 1...2 {
      // A report that comes later would count as progress.
      await bench.until(job.id) { $0?.fraction == Double(attempt) / 10 }
      hand.advance(by: 2e6)
      // The pause before the next attempt begins when the child has ended.
      try await bench.eventually {
        hand.advance(by: 1)
        return bench.starts.count == attempt + 1
      }
    }
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .succeeded && ended.attempts == 3)
  }

  @Test func aChildWithoutItsFilterIsNotAFailure() async throws {
    let bench = try TestBench(script: "echo '{\"unfenced\":22}'; finish")
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    #expect(try await bench.finished(job.id).state == .succeeded)
  }

  /// So that a restart doesn't take the attempt for one that it interrupted.
  @Test func aJobBetweenTwoAttemptsIsQueued() async throws {
    let bench = try TestBench(script: "exit 1") { $0.retryPauseSeconds = 1000 }
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    try await bench.eventually {
      try bench.catalog.job(job.id).map { $0.state == .queued && $0.attempts == 1 } ?? false
    }
    await bench.runner.stop()
    let row = try #require(try bench.catalog.job(job.id))
    #expect(row.state == .queued && row.attempts == 1 && row.interruptions == 0)
  }

  @Test func aJobThatFillsTheDiskIsKilledBeforeTheReserveIsUsed() async throws {
    let bench = try TestBench(script: "gate; progress 0.5; gate -last; finish") { $0.reservedDiskBytes = .max / 2 }
    let job = try bench.waveformJob()
    try bench.makeGate(job.id, "-last")
    bench.runner.submit(job)
    try await bench.openGate(job.id)
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .failed && ended.attempts == 1)
    let error = try #require(RowJSON.value(JobError.self, from: ended.error))
    #expect(error.code == "disk_full" && error.status == 507)
    #expect(!FileManager.default.fileExists(atPath: bench.store.workFolder(of: job.id)))
  }

  @Test func theDiskIsLookedAtOncePerSecondWhateverTheNumberOfReports() async throws {
    let disk = TestDisk()
    let bench = try TestBench(
      script: "i=0; while [ $i -lt 500 ]; do progress 0.5; i=$((i + 1)); done; finish",
      scratch: disk.scratch)
    let start = ContinuousClock.now
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    #expect(try await bench.finished(job.id).state == .succeeded)
    let looks = disk.looks.load(ordering: .relaxed)
    #expect((1...1 + Int((.now - start) / .seconds(1))).contains(looks), "\(looks)")
  }

  @Test func aDenoiseJobThatSucceedsFillsItsRecording() async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    let response = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise")
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(response.status.code == 202)
    let ended = try await bench.finished(job.id)
    let made = try #require(try ended.output.flatMap { try bench.catalog.recording($0) })
    #expect(ended.state == .succeeded && made.waveformState == .ready && made.bytes == 6 && made.audioKey != nil)
    #expect(made.derivedFrom == Derivation(recording: source.id, job: job.id, operation: "denoise"))
    let result = try #require(RowJSON.value(JobResult.self, from: ended.result))
    let noise = NoiseUsed(.quantile(0.2), adapted: nil)
    #expect(
      result == JobResult(recording: made.id, noise: noise, link: .all, clippedSamples: 3, warnings: made.warnings))
  }

  @Test func aFailedDenoiseJobRemovesItsRecording() async throws {
    let bench = try TestBench(script: "echo x > \"$output\"; failure noise_region_outside false")
    let source = try bench.recording()
    _ = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise")
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    let ended = try await bench.finished(job.id)
    let output = try #require(ended.output)
    #expect(ended.state == .failed)
    #expect(try bench.catalog.recording(output) == nil)
    #expect(try bench.catalog.recording(source.id)?.waveformState == .ready)
    #expect(!FileManager.default.fileExists(atPath: bench.store.folder(of: output)))
    #expect(!FileManager.default.fileExists(atPath: bench.store.workFolder(of: job.id)))
  }

  @Test func anEndThatTheCatalogRejectsIsReportedLater() async throws {
    let bench = try TestBench(script: "gate; failure unsupported_media false")
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    await bench.begun(job.id)
    let other = try SQLiteConnection(bench.store.catalogPath, patienceSeconds: 60)
    try other.execute(
      """
      CREATE TRIGGER refuse BEFORE UPDATE ON jobs WHEN NEW.state = 'failed'
      BEGIN SELECT RAISE(FAIL, 'not now'); END
      """)
    let writes = bench.catalog.changeCount
    try await bench.openGate(job.id)
    // The change is rejected, and rejected again.
    try await bench.eventually { bench.catalog.changeCount >= writes + 2 }
    #expect(try bench.catalog.job(job.id)?.state == .running)
    try other.execute("DROP TRIGGER refuse")
    #expect(try await bench.finished(job.id).state == .failed)
    #expect(try bench.catalog.recording(job.recording)?.waveformState == .failed)
  }
}
