import Foundation
import Storage
import Terms
import Testing

@testable import AudioService
@testable import Jobs

/// The regions best suited to learn noise from: found by the waveform's child, stored, served, and used for `auto`.
@Suite struct NoiseRegionsTests {
  private static let best = NoiseRegion(start: 1.26, end: 2.76, level: -52.1, score: 0.93)
  private static let second = NoiseRegion(start: 9, end: 10, level: -50, score: 0.5)

  /// A child that reports these two regions for any recording.
  private static let script = """
    [ "$command" = waveform ] || { echo "$noise" > "$folder/noise"; finish; exit; }
    echo x > "$pyramid"
    echo '{"analysis":{"frames":1000,"warnings":[],"noise_regions":[{"start":1.26,"end":2.76,"level":-52.1,\
    "score":0.93},{"start":9,"end":10,"level":-50,"score":0.5}]}}'
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
    "auto means the best region, the quantile if there is none, and a search if none is known",
    arguments: [([best, second], #"{"end":2.76,"start":1.26}"#), ([], #"{"quantile":0.2}"#), (nil, "auto")]
      as [([NoiseRegion]?, String)]
  )
  func automatic(regions: [NoiseRegion]?, noise: String) async throws {
    let bench = try TestBench(script: Self.script)
    let source = try bench.recording()
    try bench.catalog.update(source.id) { $0.noiseRegions = regions }
    _ = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise", body: #"{"noise":"auto"}"#)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    #expect(try await bench.finished(job.id).state == .succeeded)
    #expect(try String(contentsOfFile: bench.folder.path + "/noise", encoding: .utf8) == noise + "\n")
  }
}
