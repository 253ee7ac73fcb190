import Foundation
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct RestartTests {
  @Test func stoppingEndsTheChildrenAndLeavesTheirJobsToTheNextStart() async throws {
    let folder = try TemporaryFolder()
    let first = try TestBench(script: "progress 0.5; exec sleep 1000", in: folder) { $0.workerCount = 1 }
    let (running, waiting) = (try first.waveformJob(), try first.waveformJob())
    first.runner.submit(running)
    first.runner.submit(waiting)
    try await first.eventually { first.starts.count == 1 }
    await first.runner.stop()
    #expect(try first.catalog.job(running.id)?.state == .queued)
    #expect(try first.catalog.job(waiting.id)?.state == .queued)
    #expect(first.starts.count == 1)
    #expect(try FileManager.default.contentsOfDirectory(atPath: first.store.directory + "/jobs") == [])

    let second = try TestBench(in: folder)
    try second.runner.resume()
    #expect(try await second.finished(running.id).attempts == 2)
    #expect(try await second.finished(waiting.id).attempts == 1)
    #expect(try second.catalog.recording(running.recording)?.waveformState == .ready)
  }

  @Test func aFrozenWorkerHoldsUpNeitherTheDrainNorTheStop() async throws {
    let bench = try TestBench(script: "progress 0.5; kill -STOP $$; finish")
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    try await bench.eventually { bench.runner.live[job.id]?.fraction == 0.5 }
    await bench.runner.drain(within: 0.01)
    #expect(bench.isRunning(job.id))
    await bench.runner.stop()
    #expect(try bench.catalog.job(job.id)?.state == .queued)
  }

  @Test func stopsOfTheServiceDoNotFailAJob() async throws {
    let folder = try TemporaryFolder()
    var job: Job?
    for _ in 0..<4 {
      let bench = try TestBench(script: "exec sleep 1000", in: folder)
      if job == nil {
        bench.runner.submit(
          try {
            let new = try bench.waveformJob(); job = new; return new
          }())
      } else {
        try bench.runner.resume()
      }
      let id = try #require(job?.id)
      await bench.begun(id)
      await bench.runner.stop()
    }
    let bench = try TestBench(script: "[ $attempt -gt 6 ] || kill -9 $$; finish", in: folder)
    try bench.runner.resume()
    let ended = try await bench.finished(try #require(job?.id))
    #expect(ended.state == .succeeded && ended.attempts == 7 && ended.interruptions == 4)
  }

  @Test func aJobThatRanWhenTheServiceWasKilledIsRestarted() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    try bench.catalog.update(job.id) {
      $0.state = .running
      $0.attempts = 3
      $0.interruptions = 2
    }
    try bench.runner.resume()
    let ended = try await bench.finished(job.id)
    #expect(ended.state == .succeeded && ended.attempts == 4 && ended.interruptions == 3)
    #expect(bench.starts == ["\(job.id) 4"])
  }

  @Test func stoppingWhileAJobWaitsForItsNextAttemptReturns() async throws {
    let bench = try TestBench(script: "kill -9 $$") { $0.retryPauseSeconds = 10_000 }
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    try await bench.eventually { bench.starts.count == 1 && !bench.isRunning(job.id) }
    await bench.runner.stop()
    #expect(try bench.catalog.job(job.id)?.state == .queued)
  }

  @Test func aStoppedServiceBeginsNothing() async throws {
    let bench = try TestBench()
    await bench.runner.stop()
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    await bench.runner.stop()
    #expect(bench.starts.isEmpty)
    #expect(try bench.catalog.job(job.id)?.state == .queued)
  }
}
