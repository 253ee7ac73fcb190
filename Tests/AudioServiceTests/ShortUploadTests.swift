import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// Uploads whose waveform is built together with the probe.
struct ShortUploadTests {
  private func bench(_ script: String = "finish", _ change: (inout Configuration) -> Void = { _ in }) throws
    -> TestBench
  {
    try TestBench(script: script) {
      $0.takesInShortUploads = true
      change(&$0)
    }
  }

  private func upload(_ bench: TestBench, fields: HTTPFields = [:]) async throws -> (text: String, recording: Recording)
  {
    let response = try await bench.respond(.post, "/v1/recordings", fields: fields, body: "RIFF")
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status.code == 201, "\(text)")
    return (text, try #require(try bench.catalog.recordings(limit: 1).first))
  }

  @Test func theWaveformIsReadyInTheResponse() async throws {
    let bench = try bench { $0.maximumQueuedJobs = 1 }
    let (text, recording) = try await upload(bench, fields: ["Idempotency-Key": "\"a\""])
    #expect(text.contains("\"ready\"") && recording.waveformState == .ready && recording.format.frames == 999)
    let key = try #require(recording.waveformKey)
    #expect(bench.store.look(at: key) != .absent)
    let id = try #require(recording.waveformJob)
    let job = try #require(try bench.catalog.job(id))
    #expect(job.state == .succeeded && job.attempts == 1 && key.name.contains(job.id.text))
    // One worker, and nothing that waits.
    #expect(bench.starts.count == 1 && bench.runner.live.count == 0)
    #expect(try await upload(bench, fields: ["Idempotency-Key": "\"a\""]).text == text)
    #expect(try bench.catalog.recordings(limit: 9).count == 1)
    // The room in the queue is free again.
    #expect(try await upload(bench).recording.id != recording.id)
  }

  @Test(
    "if the waveform can't be built with the probe, a job builds it",
    arguments: [
      "[ $command != intake ] || kill -SEGV $$; finish", "[ $command != intake ] || failure memory_limit true; finish",
      "[ $command != intake ] || { command=probe; finish; exit 0; }; finish",
    ])
  func fallingBack(script: String) async throws {
    let bench = try bench(script)
    let (text, recording) = try await upload(bench)
    #expect(!text.contains("\"ready\""))
    let job = try #require(recording.waveformJob)
    #expect(try await bench.finished(job).state == .succeeded)
    #expect(try bench.catalog.recording(recording.id)?.waveformState == .ready)
  }

  @Test func longerFilesAreOnlyProbed() async throws {
    let bench = try bench("echo $command >> $folder/commands; finish")
    let body = String(repeating: "RIFF", count: 1 << 20) + "x"
    #expect(try await bench.respond(.post, "/v1/recordings", body: body).status.code == 201)
    let commands = try String(contentsOfFile: bench.folder.path + "/commands", encoding: .utf8)
    #expect(commands.hasPrefix("probe\n"))
    await bench.runner.stop()
  }
}
