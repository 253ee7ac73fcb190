import Foundation
import HTTP
import PresentRows
import Storage
import Synchronization
import Testing

@testable import AudioService
@testable import Jobs

/// A recording deleted while it's in use: nothing of it comes back, and no failure is reported.
@Suite struct DeletedMeanwhileTests {
  /// A bench that deletes the recordings or results of its jobs between a job's check of its recording and the adding
  /// of its files, like a request would.
  private func bench(deleting what: @escaping @Sendable (Job) -> RecordingID?) throws -> TestBench {
    let made = Mutex<TestBench?>(nil)
    let bench = try TestBench {
      $0.conversionWaitSeconds = 1000
      $0.willAddFiles = { id in
        guard let bench = made.withLock({ $0 }) else { return }
        made.withLock { $0 = nil }
        do {
          let job = try #require(try bench.catalog.job(id))
          let token = try #require(job.token)
          let deleted = try #require(what(job))
          bench.runner.cancel(try bench.catalog.deleteRecording(deleted) ?? [])
          try bench.store.remove(deleted)
          // If a folder is removed between its creation and the rename into it, adding fails because of a missing file.
          if job.kind == .denoise {
            try FileManager.default.removeItem(atPath: bench.store.workFolder(of: id) + "/\(token.shortName).audio")
          }
        } catch {
          Issue.record(error)
        }
      }
    }
    made.withLock { $0 = bench }
    return bench
  }

  private func names(_ folder: String, of bench: TestBench) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: bench.store.directory + "/" + folder)
  }

  @Test("a job that finishes after its recording was deleted ends quietly and leaves nothing")
  func waveform() async throws {
    let bench = try bench { $0.recording }
    let id = JobID()
    let job = Job(id: id, kind: .waveform, recording: try bench.recording(state: .queued, job: id).id)
    try bench.catalog.insert(job)
    bench.runner.submit(job)
    await bench.until(id) { $0 == nil }
    try await expectNothingLeft(of: job, on: bench)
  }

  @Test("a conversion of a deleted recording gets 404 and leaves nothing")
  func conversion() async throws {
    let bench = try bench { $0.recording }
    let source = try bench.recording()
    let answer = try await bench.respond(.get, "/v1/recordings/\(source.id)/audio?format=flac")
    try await expectNotFound(answer, source.id)
    try await expectNothingLeft(of: try #require(try bench.catalog.jobs(limit: 1).first), on: bench)
  }

  @Test("a conversion that is cancelled while its result is added leaves no file and no row")
  func cancelledConversion() async throws {
    let made = Mutex<TestBench?>(nil)
    let bench = try TestBench {
      $0.conversionWaitSeconds = 1000
      $0.willAddFiles = { id in
        guard let bench = made.withLock({ $0 }) else { return }
        do {
          bench.runner.cancel(try bench.catalog.cancel(id) ?? [])
        } catch { Issue.record(error) }
      }
    }
    made.withLock { $0 = bench }
    let source = try bench.recording()
    let before = try names("recordings/\(source.id)", of: bench)
    _ = try await bench.respond(.get, "/v1/recordings/\(source.id)/audio?format=flac")
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    await bench.until(job.id) { $0 == nil }
    await bench.runner.stop()
    #expect(job.state == .cancelled)
    #expect(try bench.catalog.conversion(of: source.id, to: "flac") == nil)
    #expect(try names("recordings/\(source.id)", of: bench) == before)
    #expect(try names("jobs", of: bench) == [])
    made.withLock { $0 = nil }
  }

  @Test("a result deleted before its job has finished stays deleted", arguments: ["source", "result"])
  func denoised(deleted: String) async throws {
    let bench = try bench { deleted == "source" ? $0.recording : $0.output }
    let source = try bench.recording()
    _ = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise")
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    let output = try #require(job.output)
    await bench.until(job.id) { $0 == nil }
    await bench.runner.stop()
    #expect(try names("jobs", of: bench) == [] && !names("recordings", of: bench).contains(output.text))
    #expect(try bench.catalog.job(job.id)?.state == .cancelled && bench.catalog.recording(output) == nil)
    #expect(bench.logged.failures == [])
  }

  private func expectNothingLeft(of job: Job, on bench: TestBench) async throws {
    // Returns once all attempts have ended.
    await bench.runner.stop()
    for folder in ["jobs", "recordings", "removed"] { #expect(try names(folder, of: bench) == []) }
    #expect(try bench.catalog.job(job.id)?.state == .cancelled)
    #expect(bench.logged.failures == [])
  }

  private func expectNotFound(_ response: HTTPResponse, _ id: RecordingID) async throws {
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(
      response.status == .notFound && text.contains("\"code\":\"not_found\"") && text.contains(id.text), "\(text)")
  }

  @Test("computing something for a deleted recording gets 404", arguments: ["preview", "spectrum"])
  func computed(what: String) async throws {
    let bench = try TestBench(
      script: "echo > $folder/begun; read -r line < $folder/hold; failure io_error true")
    try bench.holdProbe()
    let source = try bench.recording()
    let path = "/v1/recordings/\(source.id)"
    async let answer =
      what == "preview"
      ? bench.respond(.post, path + "/denoise/preview", body: #"{"window":{"start":1,"end":2}}"#)
      : bench.respond(.get, path + "/spectrum?start=1&end=2")
    try await bench.eventually { FileManager.default.fileExists(atPath: bench.folder.path + "/begun") }
    #expect(try await bench.respond(.delete, path).status == .noContent)
    try await bench.releaseProbe()
    try await expectNotFound(try await answer, source.id)
    #expect(bench.logged.failures == [])
  }

  @Test(
    "other failures keep their status",
    arguments: [("failure io_error true", 503), ("failure window_outside false", 422)])
  func kept(script: String, status: Int) async throws {
    let bench = try TestBench(script: script)
    let source = try bench.recording()
    let answer = try await bench.respond(.get, "/v1/recordings/\(source.id)/spectrum?start=1&end=2")
    #expect(answer.status.code == status)
    #expect(bench.logged.failures.count == (status == 503 ? 1 : 0))
  }

  @Test("a worker whose source is gone is not retried")
  func sourceGone() async throws {
    let bench = try TestBench(script: "echo > $folder/begun; read -r line < $folder/hold; failure io_error true") {
      $0.retryPauseSeconds = 1000
    }
    try bench.holdProbe()
    let job = try bench.waveformJob()
    bench.runner.submit(job)
    try await bench.eventually { FileManager.default.fileExists(atPath: bench.folder.path + "/begun") }
    // The part of a deletion that comes before the runner learns of it.
    _ = try bench.catalog.deleteRecording(job.recording)
    try await bench.releaseProbe()
    await bench.until(job.id) { $0 == nil }
    await bench.runner.stop()
    #expect(try names("jobs", of: bench) == [])
    #expect(bench.starts.count == 1 && bench.logged.failures == [])
  }
}
