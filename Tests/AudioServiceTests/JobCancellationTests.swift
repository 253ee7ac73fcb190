import Foundation
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

@Suite struct JobCancellationTests {
  private func cancel(_ job: Job, on bench: TestBench) async throws {
    let response = try await bench.respond(.delete, "/v1/jobs/\(job.id)")
    #expect(response.status.code == 202)
    let now = try #require(try bench.catalog.job(job.id))
    #expect(now.state == .cancelled && now.finishedAt != nil)
    await bench.until(job.id) { $0 == nil }
    try await bench.eventually { !FileManager.default.fileExists(atPath: bench.store.workFolder(of: job.id)) }
  }

  @Test func aQueuedJobIsNeverBegun() async throws {
    let bench = try TestBench(script: "gate; finish") { $0.workerCount = 1 }
    let (first, second, third) = (try bench.waveformJob(), try bench.waveformJob(), try bench.waveformJob())
    for job in [first, second, third] { bench.runner.submit(job) }
    try await cancel(second, on: bench)
    try await bench.openGate(first.id)
    try await bench.openGate(third.id)
    _ = try await bench.finished(third.id)
    #expect(bench.starts == ["\(first.id) 1", "\(third.id) 1"])
    #expect(try bench.catalog.recording(second.recording)?.waveformState == .failed)
  }

  @Test func aRunningJobsChildIsEndedAndItsPlaceIsFree() async throws {
    let bench = try TestBench(script: "echo x > \"$pyramid\"; progress 0.5; gate; finish") { $0.workerCount = 1 }
    let (first, second) = (try bench.waveformJob(), try bench.waveformJob())
    bench.runner.submit(first)
    bench.runner.submit(second)
    await bench.until(first.id) { $0?.fraction == 0.5 }
    try await cancel(first, on: bench)
    #expect(try bench.catalog.job(first.id)?.progress == 0.5)
    try await bench.openGate(second.id)
    #expect(try await bench.finished(second.id).state == .succeeded)
    #expect(try bench.catalog.recording(first.recording)?.waveformState == .failed)
  }

  @Test func aJobWaitingForItsNextAttemptIsNotRestarted() async throws {
    let bench = try TestBench(script: "kill -9 $$") { $0.retryPauseSeconds = 1000 }
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    try await bench.eventually { bench.starts.count == 1 && !bench.isRunning(job.id) }
    try await cancel(job, on: bench)
    #expect(bench.starts.count == 1)
    #expect(try bench.catalog.job(job.id)?.attempts == 1)
  }

  @Test func aCancelledDenoiseJobRemovesItsRecording() async throws {
    let bench = try TestBench(script: "echo x > \"$output\"; progress 0.5; exec sleep 1000")
    let source = try bench.recording()
    _ = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise")
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    let output = try #require(job.output)
    await bench.until(job.id) { $0?.fraction == 0.5 }
    try await cancel(job, on: bench)
    #expect(try bench.catalog.recording(output) == nil)
    #expect(try bench.catalog.recording(source.id) != nil)
    #expect(!FileManager.default.fileExists(atPath: bench.store.folder(of: output)))
    let document = String(
      decoding: try await bench.respond(.get, "/v1/jobs/\(job.id)").body.collect(), as: UTF8.self)
    #expect(document.contains("\"result\":null") && !document.contains(output.text), "\(document)")
    await bench.runner.stop()
  }

  @Test func deletingARecordingEndsTheJobsOnIt() async throws {
    let bench = try TestBench(script: "progress 0.5; exec sleep 1000")
    let source = try bench.recording()
    _ = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise")
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    await bench.begun(job.id)
    #expect(try await bench.respond(.delete, "/v1/recordings/\(source.id)").status.code == 204)
    #expect(try bench.catalog.job(job.id)?.state == .cancelled)
    #expect(try bench.catalog.recordings(limit: 10).isEmpty)
    try await bench.eventually { !FileManager.default.fileExists(atPath: bench.store.workFolder(of: job.id)) }
    #expect(!FileManager.default.fileExists(atPath: bench.store.folder(of: source.id)))
    await bench.runner.stop()
  }

  @Test func aFinishedJobCannotBeCancelled() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    _ = try await bench.finished(job.id)
    #expect(try await bench.respond(.delete, "/v1/jobs/\(job.id)").status.code == 409)
    #expect(try bench.catalog.recording(job.recording)?.waveformState == .ready)
  }

  @Test func aCancelledWaveformIsRebuiltOnRequest() async throws {
    let bench = try TestBench(script: "[ -e \"$folder/again\" ] || exec sleep 1000; finish")
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    await bench.begun(job.id)
    try await cancel(job, on: bench)
    try Data().write(to: URL(fileURLWithPath: bench.folder.path + "/again"))
    let response = try await bench.respond(.post, "/v1/recordings/\(job.recording)/waveform")
    #expect(response.status.code == 202)
    let again = try #require(try bench.catalog.recording(job.recording)?.waveformJob)
    #expect(try await bench.finished(again).state == .succeeded)
    #expect(try await bench.respond(.post, "/v1/recordings/\(job.recording)/waveform").status.code == 409)
  }
}
