import Foundation
import PresentRows
import Processing
import Testing
import Workers

@testable import AudioService
@testable import Jobs
@testable import Storage

/// A worker whose job was given to another attempt meanwhile. The data folder's lock prevents that on one machine, so
/// the benches don't take it.
@Suite struct LostLeaseTests {
  /// Each attempt waits at a gate of its own and writes another sound.
  private static let script = #"gate -$attempt; text=$(finish); echo "sound of $attempt" > "$output"; echo "$text""#

  /// Two services on one data folder, with a job that the second has taken from the first while the first's child runs.
  private struct Pair {
    let first, second: TestBench
    let job: Job
    let output: RecordingID

    init(script: String = LostLeaseTests.script) async throws {
      let folder = try TemporaryFolder()
      let first = try TestBench(script: script, in: folder)
      let source = try first.recording()
      let output = try first.recording(state: .queued).id
      try FileManager.default.removeItem(atPath: first.store.folder(of: output))
      try first.catalog.update(output) { ($0.audioKey, $0.bytes, $0.sha256) = (nil, nil, nil) }
      let job = Job(kind: .denoise, recording: source.id, output: output, parameters: RowJSON.text(DenoiseParameters()))
      try first.catalog.insert(job)
      for attempt in 1...2 { try first.makeGate(job.id, "-\(attempt)") }
      first.runner.submit(job)
      try await first.eventually { try Self.attempts(of: job, first) == 1 }
      let second = try TestBench(script: script, in: folder)
      try second.runner.resume()
      try await second.eventually { try Self.attempts(of: job, second) == 2 }
      (self.first, self.second, self.job, self.output) = (first, second, job, output)
    }

    /// The number of attempts whose child is running.
    private static func attempts(of job: Job, _ bench: TestBench) throws -> Int? {
      bench.isRunning(job.id) ? try bench.catalog.job(job.id)?.attempts : nil
    }

    /// Lets an attempt's child go on, and waits until its service has done with the job.
    func finish(_ attempt: Int) async throws {
      let bench = attempt == 1 ? first : second
      try await bench.openGate(job.id, "-\(attempt)")
      await bench.until(job.id) { $0 == nil }
    }

    /// Expects that the job has the second attempt's result, and that nothing else is left.
    func expectTheSecondsResult() throws {
      let ended = try #require(try second.catalog.job(job.id))
      #expect(ended.state == .succeeded && ended.attempts == 2 && ended.error == nil)
      let made = try #require(try second.catalog.recording(output))
      let folder = second.store.folder(of: output)
      let audio = try String(contentsOfFile: folder + "/" + #require(made.audioFile), encoding: .utf8)
      #expect(audio == "sound of 2\n")
      let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
      #expect(files == [made.audioFile, made.descriptionKey.name, made.waveformFile].compactMap { $0 }.sorted())
      #expect(try FileManager.default.contentsOfDirectory(atPath: second.store.directory + "/jobs") == [])
    }
  }

  @Test("a worker that has lost its lease can't finish the job that another attempt works on")
  func lateFinish() async throws {
    let pair = try await Pair()
    try await pair.finish(1)
    let job = try #require(try pair.second.catalog.job(pair.job.id))
    #expect(job.state == .running && job.attempts == 2)
    try await pair.finish(2)
    try pair.expectTheSecondsResult()
  }

  @Test("a worker that has lost its lease doesn't change the result of the next attempt")
  func lateFinishAfterTheEnd() async throws {
    let pair = try await Pair()
    try await pair.finish(2)
    try await pair.finish(1)
    try pair.expectTheSecondsResult()
  }

  @Test(
    "a worker that has lost its lease can neither fail the job nor queue it again",
    arguments: ["failure unsupported_media false", "kill -9 $$"])
  func lateFailure(end: String) async throws {
    let pair = try await Pair(script: "if [ $attempt = 1 ]; then gate -1; \(end); fi; " + Self.script)
    try await pair.finish(1)
    let job = try #require(try pair.second.catalog.job(pair.job.id))
    #expect(job.state == .running && job.attempts == 2)
    try await pair.finish(2)
    try pair.expectTheSecondsResult()
  }
}
