import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct WaveformsTests {
  @Test("slices that differ in one thing have different entity tags")
  func entityTags() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let queries = [
      "waveform?start=5&end=20&scale=256", "waveform?start=5&end=21&scale=256", "waveform?start=4&end=20&scale=256",
      "waveform?start=5&end=20&scale=512", "waveform?start=5&end=20&scale=256&channels=split",
      "waveform?start=5&end=20&scale=256&channels=0", "waveform?start=5&end=20&scale=256&channels=1",
      "waveform?start=5&end=20&scale=256&measures=rms", "waveform?start=5&end=20&scale=256&bits=8",
      "waveform.dat?start=5&end=20&scale=256", "waveform.dat?start=5&end=20&scale=256&version=1",
      "waveform.json?start=5&end=20&scale=256", "peaks.json?start=5&end=20&scale=256",
    ]
    var tags: [String: String] = [:]
    for query in queries {
      let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/\(query)")
      #expect(response.status == .ok, "\(query)")
      let tag = try #require(response.fields["ETag"], "\(query)")
      #expect(tags.updateValue(query, forKey: tag) == nil, "\(query) has the tag of another: \(tag)")
    }
  }
}
