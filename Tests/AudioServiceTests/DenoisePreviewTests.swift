import Contract
import Foundation
import HTTP
import PresentRows
import Storage
import Terms
import Testing

@testable import AudioService
@testable import Jobs

/// Previews, and what they share with spectra: rejections, failures, and recordings that are still being made.
@Suite struct DenoisePreviewTests {
  static let script = """
    case $command in
      denoise)
        echo "$regions" > "$folder/regions"
        report=$(finish); echo "RIFF of ${output##*/}" > "$output"; echo "$report" ;;
      *) echo '{"spectrum":{"frequencies":[0,20.83],"power_db":[-81.2,-77]}}' ;;
    esac
    """

  @Test func aPreviewIsTheChildsFileAndLeavesNothing() async throws {
    let bench = try TestBench(script: Self.script)
    let source = try bench.recording()
    try bench.catalog.update(source.id) {
      $0.noiseRegions = [NoiseRegion(1260..<2760, sampleRate: 1000, level: -52.1, score: 0.93)]
    }
    let path = "/v1/recordings/\(source.id)/denoise/preview"
    let answer = try await bench.check(
      .post, path, body: #"{"window":{"start":1,"end":31},"strength":"strong","name":"a","format":"flac"}"#, 200)
    #expect(answer == "RIFF of preview.wav\n")
    #expect(
      try String(contentsOfFile: bench.folder.path + "/regions", encoding: .utf8).hasPrefix("[{\"frames\":[1260,2760],")
    )
    #expect(try bench.catalog.jobs(limit: 9).isEmpty && bench.catalog.recordings(limit: 9).count == 1)
    let jobs = URL(fileURLWithPath: bench.store.workFolder(of: JobID())).deletingLastPathComponent().path
    try await bench.eventually { try FileManager.default.contentsOfDirectory(atPath: jobs).isEmpty }
  }

  @Test("a preview names the job's warnings about its sound, and no others")
  func warnings() async throws {
    let script = #"""
      warning() { echo '{"code":"'$1'","detail":"d"}'; }
      all="$(warning noise_has_speech),$(warning truncated),$(warning not_speech)"
      finish | sed 's/"warnings":\[\]/"warnings":['"$all"']/'
      """#
    for (script, codes) in [(script, "noise_has_speech, not_speech"), (Self.script, nil)] as [(String, String?)] {
      let bench = try TestBench(script: script)
      let path = "/v1/recordings/\(try bench.recording().id)/denoise/preview"
      let answer = try await bench.respond(.post, path, body: #"{"window":{"start":1,"end":2}}"#)
      #expect(answer.status == .ok && answer.fields["Stillwave-Warnings"] == codes)
    }
  }

  @Test(
    "an invalid preview is rejected with the member at fault",
    arguments: [
      ("{}", 400, "window"), (#"{"window":5}"#, 400, "window"), (#"{"window":{"start":1}}"#, 400, "window.end"),
      (#"{"window":{"end":1}}"#, 400, "window.start"), (#"{"window":{"start":2,"end":2}}"#, 400, "window.end"),
      (#"{"window":{"start":2,"end":32.1}}"#, 400, "window.end"),
      (#"{"window":{"start":2,"end":3,"to":1}}"#, 400, "window.to"),
      (#"{"window":{"start":2,"end":3},"strenght":"strong"}"#, 400, "strenght"),
      (#"{"window":{"start":60,"end":61}}"#, 422, "window.start"),
      (#"{"window":{"start":1,"end":2},"noise":{"start":70,"end":80}}"#, 422, "noise"),
    ])
  func wrongPreview(body: String, status: Int, parameter: String) async throws {
    let bench = try TestBench(script: Self.script)
    let source = try bench.recording()
    let answer = try await bench.check(
      .post, "/v1/recordings/\(source.id)/denoise/preview", body: body, status)
    #expect(answer.contains("\"parameter\":\"\(parameter)\""), "\(answer)")
  }

  @Test("a window of exactly 30 s is accepted, whatever the difference of its times is in floating point")
  func longestWindow() async throws {
    let bench = try TestBench(script: Self.script)
    let path = "/v1/recordings/\(try bench.recording().id)/denoise/preview"
    for (window, status) in [(#"{"start":2.2,"end":32.2}"#, 200), (#"{"start":2.2,"end":32.201}"#, 400)] {
      _ = try await bench.check(.post, path, body: "{\"window\":\(window)}", status)
    }
  }

  @Test("a region may end a rounding error past the end, and begins before it")
  func regionAtTheEnd() async throws {
    let bench = try TestBench(script: Self.script)
    let path = "/v1/recordings/\(try bench.recording().id)/denoise/preview"
    for (noise, status) in [("59.5,\"end\":60.01", 200), ("59.5,\"end\":60.011", 422), ("59.9996,\"end\":60.001", 422)]
    {
      let body = "{\"window\":{\"start\":1,\"end\":2},\"noise\":{\"start\":\(noise)}}"
      _ = try await bench.check(.post, path, body: body, status)
    }
  }

  @Test func aNoiseRegionMayBeAsShortAsAnAnalysisFrame() async throws {
    let bench = try TestBench(script: Self.script)
    let path = "/v1/recordings/\(try bench.recording().id)/denoise/preview"
    // 48 samples per frame at 1,000 Hz.
    for (end, status) in [(1.048, 200), (1.047, 422)] {
      let body = "{\"window\":{\"start\":1,\"end\":2},\"noise\":{\"start\":1,\"end\":\(end)}}"
      _ = try await bench.check(.post, path, body: body, status)
    }
  }

  @Test func aRejectionsTextIsForPeople() async throws {
    let bench = try TestBench(script: Self.script)
    let source = try bench.recording()
    try bench.catalog.update(source.id) { $0.format.setLength(frames: 8390) }
    let path = "/v1/recordings/\(source.id)"
    let late = try await bench.check(.get, path + "/spectrum?start=9.123456789&end=10", 422)
    #expect(late.contains("The window begins at 9.123 s, but the recording lasts 8.39 s."), "\(late)")
    let outside = try await bench.check(
      .post, path + "/denoise/preview", body: #"{"window":{"start":1,"end":2},"noise":{"start":8,"end":9}}"#, 422
    )
    #expect(outside.contains("The noise region 8–9 s is not within the recording, which lasts 8.39 s."), "\(outside)")
    let short = try await bench.check(
      .post, path + "/denoise/preview", body: #"{"window":{"start":1,"end":2},"noise":{"start":1,"end":1.001}}"#,
      422)
    #expect(short.contains("The noise region has 1 frame; "), "\(short)")
  }

  @Test(
    "a child that rejects the request, dies, or fails leads to its own answer",
    arguments: [
      ("failure noise_region_too_short false", 422, "noise_region_too_short"),
      ("failure silent_noise false", 422, "silent_noise"),
      ("failure recording_too_short false", 422, "recording_too_short"),
      ("failure io_error true", 503, "unavailable"),
      ("kill -9 $$", 503, "unavailable"), ("exit 1", 503, "unavailable"),
    ])
  func failures(script: String, status: Int, code: String) async throws {
    let bench = try TestBench(script: script)
    let source = try bench.recording()
    let path = "/v1/recordings/\(source.id)"
    let preview = try await bench.respond(.post, path + "/denoise/preview", body: #"{"window":{"start":1,"end":2}}"#)
    #expect(preview.status.code == status)
    #expect(String(decoding: try await preview.body.collect(), as: UTF8.self).contains("\"code\":\"\(code)\""))
    #expect(try await bench.respond(.get, path + "/spectrum?start=1&end=2").status.code == status)
  }

  @Test func anUnfinishedRecordingHasNeither() async throws {
    let bench = try TestBench(script: Self.script)
    let source = try bench.recording()
    try bench.catalog.update(source.id) { $0.audioKey = nil }
    let path = "/v1/recordings/\(source.id)"
    _ = try await bench.check(.get, path + "/spectrum?start=1&end=2", 409)
    _ = try await bench.check(.post, path + "/denoise/preview", body: #"{"window":{"start":1,"end":2}}"#, 409)
  }
}
