import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService

@Suite struct MissingFilesTests {
  private func answer(
    _ bench: TestBench, _ method: HTTPMethod, _ target: String, body: String = ""
  ) async throws -> (status: Int, text: String) {
    let response = try await bench.respond(method, target, body: body)
    return (response.status.code, String(decoding: try await response.body.collect(), as: UTF8.self))
  }

  private func lose(_ name: String, of recording: Recording, on bench: TestBench) throws {
    try FileManager.default.removeItem(atPath: bench.store.folder(of: recording.id) + "/" + name)
  }

  private func sweep(_ bench: TestBench) throws -> MissingFiles.Report {
    try MissingFiles(catalog: bench.catalog, store: bench.store).sweep()
  }

  @Test func aSoundThatIsGoneIsToldToWhoeverAsksForIt() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    try lose("audio.wav", of: recording, on: bench)
    let path = "/v1/recordings/\(recording.id)"
    for (method, target, body) in [
      (HTTPMethod.get, "/audio", ""), (.post, "/denoise", "{}"), (.get, "/spectrum?start=0&end=1", ""),
      (.post, "/denoise/preview", "{\"window\":{\"start\":0,\"end\":1}}"), (.get, "/waveform?scale=16&end=1", ""),
    ] {
      let (status, text) = try await answer(bench, method, path + target, body: body)
      #expect(status == 410 && text.contains("\"audio_missing\""), "\(target): \(status) \(text)")
    }
    // What needs no sound is there as before.
    #expect(try await answer(bench, .get, path + "/waveform?scale=256").status == 200)
    #expect(try bench.catalog.jobs(limit: 9).isEmpty)
  }

  @Test func theStartMarksWhatIsGoneAndUnmarksWhatIsBack() async throws {
    let bench = try TestBench()
    let (whole, lost) = (try bench.recording(), try bench.recording())
    #expect(try sweep(bench) == MissingFiles.Report())
    try lose("audio.wav", of: lost, on: bench)
    for _ in 0..<2 {
      #expect(try sweep(bench) == MissingFiles.Report(sounds: 1, waveforms: 0))
      #expect(try bench.catalog.recording(lost.id)?.warnings.map(\.code) == ["audio_missing"])
    }
    #expect(try bench.catalog.recording(whole.id)?.warnings == [])
    try Data("RIFF".utf8).write(to: URL(fileURLWithPath: bench.store.folder(of: lost.id) + "/audio.wav"))
    #expect(try sweep(bench) == MissingFiles.Report())
    #expect(try bench.catalog.recording(lost.id)?.warnings == [])
  }

  @Test(arguments: [true, false])
  func aWaveformThatIsGoneHasFailedAndCanBeBuiltAgain(isFoundAtTheStart: Bool) async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let name = try #require(try bench.catalog.recording(recording.id)?.waveformFile)
    try lose(name, of: recording, on: bench)
    let path = "/v1/recordings/\(recording.id)"
    if isFoundAtTheStart { #expect(try sweep(bench) == MissingFiles.Report(sounds: 0, waveforms: 1)) }
    let (status, text) = try await answer(bench, .get, path + "/waveform?width=10")
    #expect(status == 200 && text.contains("\"complete\":false") && text.contains("\"length\":0"))
    #expect(try bench.catalog.recording(recording.id)?.waveformState == .failed)
    #expect(try await answer(bench, .post, path + "/waveform").status == 202)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    #expect(try bench.catalog.recording(recording.id)?.waveformState == .ready)
  }
}
