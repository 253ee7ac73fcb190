import Foundation
import Storage
import Terms
import Testing

@testable import AudioService
@testable import Jobs

/// The regions best suited to learn noise from: found by the waveform's child, stored, served, and used for `auto`.
@Suite struct NoiseRegionsTests {
  private static let best = NoiseRegion(1260..<2760, sampleRate: 1000, level: -52.1, score: 0.93)
  private static let second = NoiseRegion(9000..<10_000, sampleRate: 1000, level: -50, score: 0.5)

  /// A child that reports these two regions for any recording.
  private static let script = """
    [ "$command" = waveform ] || { echo "$regions" > "$folder/regions"; finish; exit; }
    echo x > "$pyramid"
    echo '{"analysis":{"frames":1000,"warnings":[],"noise_regions":[{"frames":[1260,2760],"sample_rate":1000,\
    "level":-52.1,"score":0.93},{"frames":[9000,10000],"sample_rate":1000,"level":-50,"score":0.5}]}}'
    """

  @Test func theWaveformsChildFindsThemAndTheyAreKept() async throws {
    let bench = try TestBench(script: "[ $attempt != 1 ] || gate; " + Self.script)
    let job = try bench.waveformJob()
    let path = "/v1/recordings/\(job.recording)/noise-regions"
    #expect(try await bench.check(.get, path, 200) == #"{"complete":false,"regions":[]}"#)
    bench.runner.submit(job)
    try await bench.openGate(job.id)
    _ = try await bench.finished(job.id)
    #expect(try bench.catalog.recording(job.recording)?.noiseRegions == [Self.best, Self.second])
    let all = try await bench.check(.get, path, 200)
    #expect(all.contains(#""complete":true"#) && all.contains("-52.1") && all.contains("10"))
    let one = try await bench.check(.get, path + "?limit=1", 200)
    #expect(one == #"{"complete":true,"regions":[{"end":2.76,"level":-52.1,"score":0.93,"start":1.26}]}"#)
  }

  @Test("a limit out of range is rejected", arguments: ["0", "21", "x", ""])
  func limit(text: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let answer = try await bench.respond(.get, "/v1/recordings/\(recording.id)/noise-regions?limit=\(text)")
    #expect(answer.status.code == 400)
  }

  @Test(
    "for auto, the worker gets the regions that are known, and looks for them if none are",
    arguments: [([best, second], #"[{"frames":[1260,2760],"#), ([], "[],"), (nil, "unknown")]
      as [([NoiseRegion]?, String)]
  )
  func automatic(regions: [NoiseRegion]?, told: String) async throws {
    let bench = try TestBench(script: Self.script)
    let source = try bench.recording()
    try bench.catalog.update(source.id) { $0.noiseRegions = regions }
    _ = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise", body: #"{"noise":"auto"}"#)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    #expect(try String(contentsOfFile: bench.folder.path + "/regions", encoding: .utf8).hasPrefix(told))
  }
}
