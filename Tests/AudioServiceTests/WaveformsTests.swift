import Foundation
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
      "waveform.points?start=5&end=20&scale=256", "waveform.points?start=5&end=20&scale=256&measures=peak,rms",
    ]
    var tags: [String: String] = [:]
    for query in queries {
      let response = try await bench.respond(.get, "/v1/recordings/\(recording.id)/\(query)")
      #expect(response.status == .ok, "\(query)")
      let tag = try #require(response.fields["ETag"], "\(query)")
      #expect(tags.updateValue(query, forKey: tag) == nil, "\(query) has the tag of another: \(tag)")
    }
  }

  @Test func pointsAreTheJSONsNumbersWhicheverWayTheyAreAskedFor() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let (path, window) = (
      "/v1/recordings/\(recording.id)/waveform", "?start=5&end=20&scale=256&measures=peak,rms,average"
    )
    let written = try await bench.respond(.get, path + window).body.collect()
    let json = try #require(try JSONSerialization.jsonObject(with: Data(written)) as? [String: Any])
    let points = try await bench.respond(.get, path + ".points" + window, fields: ["Accept-Encoding": "gzip"])
    #expect(points.fields["Content-Type"] == "application/vnd.stillwave.points")
    #expect(points.fields["Content-Encoding"] == nil && points.fields["Vary"] == nil)
    for member in ["Start-Frame", "Available-Frames", "Total-Frames"] {
      let number = json[member.lowercased().replacing("-", with: "_")] as? Int
      #expect(points.fields["Stillwave-" + member] == number.map(String.init))
    }
    let bytes = try await points.body.collect()
    let words = stride(from: 32, to: bytes.count, by: 2).map {
      Int16(bytes[$0]) | Int16(bitPattern: UInt16(bytes[$0 + 1]) << 8)
    }
    #expect(words.map(Int.init).starts(with: ["data", "rms", "average"].flatMap { json[$0] as? [Int] ?? [] }))
    let negotiated = try await bench.respond(
      .get, path + window, fields: ["Accept": "application/vnd.stillwave.points"])
    #expect(try await negotiated.body.collect() == bytes && negotiated.fields["Vary"] == "Accept")
  }
}
