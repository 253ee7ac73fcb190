import Foundation
import HTTP
import PresentRows
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

@Suite struct MissingFilesTests {
  private func answer(
    _ bench: TestBench, _ method: HTTPMethod, _ target: String, body: String = ""
  ) async throws -> (status: Int, text: String) {
    let response = try await bench.respond(method, target, body: body)
    return (response.status.code, String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  private func path(_ name: String, of recording: Recording, on bench: TestBench) -> String {
    bench.store.folder(of: recording.id) + "/" + name
  }

  private func sweep(_ bench: TestBench) throws -> MissingFiles.Report {
    try bench.context.files.sweep(giveUp: bench.context.waveforms.giveUp)
  }

  /// Missing, truncated, empty, and longer than before.
  private static let faults = ["audio_missing": [nil], "audio_damaged": ["RIF", "", "RIFFRIFF"]]

  @Test(arguments: faults.flatMap { code, contents in contents.map { (code, $0) } })
  func changedAudioIsReportedToRequestsForIt(code: String, content: String?) async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    try spoil("audio.wav", of: recording, content, on: bench)
    let path = "/v1/recordings/\(recording.id)"
    for (method, target, body) in [
      (HTTPMethod.get, "/audio", ""), (.get, "/audio?format=wav", ""), (.get, "/audio?format=flac", ""),
      (.post, "/denoise", "{}"), (.get, "/spectrum?start=0&end=1", ""),
      (.post, "/denoise/preview", "{\"window\":{\"start\":0,\"end\":1}}"), (.get, "/waveform?scale=16&end=1", ""),
      (.get, "/waveform.png?scale=16&end=1", ""),
    ] {
      let (status, text) = try await answer(bench, method, path + target, body: body)
      #expect(status == 410 && text.contains("\"\(code)\""), "\(target): \(status) \(text)")
    }
    let (status, text) = try await answer(bench, .get, path)
    #expect(status == 200 && text.contains("\"\(code)\""))
    // Requests that don't need the audio work as before.
    #expect(try await answer(bench, .get, path + "/waveform?scale=256").status == 200)
    #expect(try bench.catalog.jobs(limit: 9).isEmpty)
  }

  private func spoil(_ name: String, of recording: Recording, _ content: String?, on bench: TestBench) throws {
    let path = path(name, of: recording, on: bench)
    guard let content else { return try FileManager.default.removeItem(atPath: path) }
    try Data(content.utf8).write(to: URL(fileURLWithPath: path))
  }

  @Test(arguments: faults.flatMap { code, contents in contents.map { (code, $0) } })
  func theStartMarksMissingFilesAndUnmarksRestoredOnes(code: String, content: String?) async throws {
    let bench = try TestBench()
    let (whole, lost) = (try bench.recording(), try bench.recording())
    #expect(try sweep(bench) == MissingFiles.Report())
    try spoil("audio.wav", of: lost, content, on: bench)
    for _ in 0..<2 {
      #expect(try sweep(bench) == MissingFiles.Report(sounds: 1, waveforms: 0))
      #expect(try bench.catalog.recording(lost.id)?.warnings.map(\.code) == [code])
    }
    #expect(try bench.catalog.recording(whole.id)?.warnings == [])
    try spoil("audio.wav", of: lost, "RIFF", on: bench)
    #expect(try sweep(bench) == MissingFiles.Report())
    #expect(try bench.catalog.recording(lost.id)?.warnings == [])
  }

  @Test func aDiskThatFailsToAnswerHasLostNothing() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let folder = bench.store.folder(of: recording.id)
    // Each file in a folder that links to itself has too many links in its path (ELOOP).
    try FileManager.default.moveItem(atPath: folder, toPath: bench.folder.path + "/elsewhere")
    try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: folder)
    #expect(try sweep(bench) == MissingFiles.Report())
    #expect(try bench.catalog.recording(recording.id)?.warnings == [])
  }

  @Test(arguments: faults.flatMap { code, contents in contents.map { (code, $0) } })
  func aJobWhoseSourceChangedFailsWithAReason(code: String, content: String?) async throws {
    let bench = try TestBench()
    let job = Job(kind: .waveform, recording: try bench.recording(state: .queued).id)
    try bench.catalog.insert(job)
    let source = try #require(try bench.catalog.recording(job.recording))
    try spoil("audio.wav", of: source, content, on: bench)
    bench.runner.submit(job, source: source)
    let error = try #require(RowJSON.value(JobError.self, from: try await bench.finished(job.id).error))
    #expect(error.code == code && error.status == 410)
    #expect(bench.starts.isEmpty)
    let (status, text) = try await answer(bench, .post, "/v1/recordings/\(source.id)/waveform")
    #expect(status == 410 || status == 409, "\(text)")
  }

  /// The service can't know any more if this is the file that was uploaded.
  @Test func aTruncatedConversionIsMadeAgain() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let target = "/v1/recordings/\(recording.id)/audio?format=flac"
    #expect(try await answer(bench, .get, target).text == "sound\n")
    let conversion = try #require(try bench.catalog.conversion(of: recording.id, to: "flac"))
    try spoil(conversion.key.name, of: recording, "so", on: bench)
    #expect(try await answer(bench, .get, target).text == "sound\n")
  }
}
