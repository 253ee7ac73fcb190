import AudioIO
import Denoise
import Foundation
import HTTP
import PresentRows
import Processing
import Terms
import Testing
import Waveform
import Workers

@testable import AudioService
@testable import Jobs
@testable import Storage

/// Spectrograms over HTTP, by real readers. What they show is tested in their module.
@Suite struct SpectrogramsTests {
  private static let sound = (0..<120_000).map { Float((Double($0 / 2) * 0.7).remainder(dividingBy: 1)) }

  private func target(_ recording: Recording, _ rest: String) -> String { "/v1/recordings/\(recording.id)/\(rest)" }

  /// A recording of 60 s at 1,000 Hz with two channels, whose file has this sound.
  private func recording(_ bench: TestBench, _ state: WaveformState = .ready, job: JobID? = nil) throws -> Recording {
    let path = bench.folder.path + "/made.wav"
    var writer = try AudioWriter(
      creating: path, format: AudioFormat(container: .wav, codec: .pcmF32, sampleRate: 1000, channels: 2),
      expectedFrames: 60_000)
    var quantised: [Int16] = []
    try writer.write(Self.sound.span, quantised: &quantised)
    try writer.finish(isDurable: false)
    let recording = try bench.recording(state: state, job: job)
    let key = try #require(recording.audioKey)
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    try data.write(to: URL(fileURLWithPath: bench.store.path(of: key)))
    try bench.catalog.update(recording.id) { $0.bytes = Int64(data.count) }
    if state == .ready { try bench.makeWaveform(of: recording) }
    return recording
  }

  private func values(_ change: (inout SpectrogramQuery) -> Void) throws -> (SpectrogramTile, [UInt8]) {
    var query = SpectrogramQuery()
    change(&query)
    let tile = try SpectrogramTile(
      query,
      of: SpectrogramExtent(
        sampleRate: 1000, channels: 2, availableFrames: 60_000, length: 60_000, isComplete: true))
    var builder = SpectrogramBuilder(tile)
    while let frames = builder.nextFrames {
      builder.append(Self.sound.span.extracting(Int(frames.lowerBound) * 2..<Int(frames.upperBound) * 2))
    }
    return (tile, builder.finish())
  }

  @Test func aTileOfAFinishedRecordingHasTheValuesOfItsSamplesAndNeverChanges() async throws {
    let bench = try TestBench()
    let recording = try recording(bench)
    let query = "start=10&end=30&scale=128&height=40&channels=1&frequency_scale=log&min_db=-90&max_db=-10&window=512"
    let (tile, expected) = try values {
      ($0.start, $0.end, $0.resolution, $0.height, $0.channels) = (10, 30, .scale(128), 40, .channel(1))
      ($0.frequencyScale, $0.minDB, $0.maxDB, $0.window) = (.log, -90, -10, 512)
    }
    let path = target(recording, "spectrogram?\(query)")
    let response = try await bench.respond(.get, path)
    let body = try await response.body.collect()
    #expect(response.status == .ok && Array(body) == expected && Set(expected).count > 50)
    #expect(response.fields["Content-Type"] == "application/octet-stream")
    #expect(response.fields["Cache-Control"] == "private, max-age=31536000, immutable")
    let facts = ["Scale", "Start-Frame", "Columns", "Complete"].map { response.fields["Stillwave-\($0)"] }
    #expect(facts == ["128", "9984", "\(tile.columnCount)", "true"])
    let etag = try #require(response.fields["ETag"])
    #expect(try await bench.respond(.get, path, fields: ["If-None-Match": etag]).status == .notModified)
    var tags: Set = [etag]
    for other in [
      "start=11", "end=31", "scale=256", "height=41", "channels=0", "frequency_scale=mel", "min_db=-91", "max_db=-11",
      "window=1024", "min_hz=21", "max_hz=499",
    ] {
      let name = other.prefix { $0 != "=" }
      let rest = query.split(separator: "&").filter { !$0.hasPrefix("\(name)=") } + [Substring(other)]
      let answer = try await bench.respond(.get, target(recording, "spectrogram?\(rest.joined(separator: "&"))"))
      tags.insert(try #require(answer.fields["ETag"], "\(other)"))
    }
    #expect(tags.count == 12)
    for palette in ["magma", "viridis", "grey"] {
      let picture = try await bench.respond(.get, target(recording, "spectrogram.png?\(query)&palette=\(palette)"))
      #expect(picture.fields["Content-Type"] == "image/png")
      let png = Array(try await picture.body.collect())
      let size = [0, 0, 0, UInt8(tile.columnCount), 0, 0, 0, 40]
      #expect(Array(png[..<4]) == [0x89, 0x50, 0x4E, 0x47] && Array(png[16..<24]) == size)
      tags.insert(try #require(picture.fields["ETag"]))
    }
    #expect(tags.count == 15)
  }

  @Test func aGrowingRecordingShowsWhatHasBeenRead() async throws {
    let bench = try TestBench()
    let id = JobID()
    let recording = try recording(bench, .building, job: id)
    let (_, whole) = try values { ($0.resolution, $0.height) = (.scale(256), 8) }
    let token = AttemptToken(job: id, attempt: 1, nonce: "0123456789abcdef")
    try bench.store.makeWorkFolder(of: id)
    var writer = try PyramidWriter(creating: bench.growingPath(of: token), sampleRate: 1000, channels: 2)
    let samples = [Int16](repeating: 0, count: 50_000)
    try writer.append(samples.span)
    try writer.publish()
    bench.runner.live.insert(
      id, LiveJob(isRunning: true, tenant: .none, recording: recording.id, writer: token))
    for (ready, columns) in [(0, 0), (1024, 1), (20_000, 75)] {
      bench.runner.live.update(id) {
        $0.progress = WorkerProgress(
          fraction: 0.3, readyFrames: Int64(ready), totalFrames: 60_000, estimatedFrames: nil)
      }
      let response = try await bench.respond(.get, target(recording, "spectrogram?scale=256&height=8"))
      #expect(response.fields["Stillwave-Complete"] == "false" && response.fields["ETag"] == nil)
      #expect(response.fields["Cache-Control"] == "no-store")
      #expect(response.fields["Stillwave-Columns"] == "\(columns)")
      let body = Array(try await response.body.collect())
      let part: [UInt8] = (0..<8).flatMap { row in Array(whole[(row * 235)..<(row * 235 + columns)]) }
      #expect(body == part)
    }
  }

  @Test func aWindowWithoutSoundIsEmpty() async throws {
    let bench = try TestBench()
    let recording = try recording(bench)
    let empty = try await bench.respond(.get, target(recording, "spectrogram?start=70"))
    #expect(empty.status == .ok && empty.fields["Stillwave-Columns"] == "0")
    #expect(try await empty.body.collect().isEmpty)
    let picture = try await bench.respond(.get, target(recording, "spectrogram.png?start=70"))
    let bytes = try await picture.body.collect()
    #expect(picture.status == .ok && Array(bytes[16..<20]) == [0, 0, 0, 1])
  }

  @Test(
    "a bad value is named",
    arguments: [
      ("scale=63", "scale"), ("scale=100", "scale"), ("scale=64&width=9", "width"), ("width=4097", "width"),
      ("height=0", "height"), ("height=1&channels=split", "height"), ("channels=2", "channels"),
      ("channels=a", "channels"), ("frequency_scale=bark", "frequency_scale"), ("min_hz=-1", "min_hz"),
      ("min_hz=a", "min_hz"), ("max_hz=501", "max_hz"), ("min_hz=100&max_hz=100.5", "max_hz"),
      ("frequency_scale=log&min_hz=0", "min_hz"), ("min_db=-121", "min_db"), ("max_db=1", "max_db"),
      ("min_db=-10&max_db=-20", "max_db"), ("window=1000", "window"), ("window=32768", "window"),
      ("start=-1", "start"), ("start=2&end=1", "end"), ("palette=jet", "palette"), ("colour=red", "colour"),
    ])
  func badValue(query: String, parameter: String) async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let response = try await bench.respond(.get, target(recording, "spectrogram.png?\(query)"))
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status == .badRequest && text.contains("\"parameter\":\"\(parameter)\""), "\(text)")
  }
}
