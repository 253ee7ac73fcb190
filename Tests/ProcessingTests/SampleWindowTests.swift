import AudioIO
import Foundation
import Testing
import Waveform

@testable import Processing

/// Slices from samples, and the sound maps that save the first slice reading the whole file.
struct SampleWindowTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func make(_ container: AudioContainer, _ codec: AudioCodec, frames: Int = 100_000) throws -> String {
    let format = AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 2)
    let path = folder("sound.\(codec)")
    try encode(swell(frames: frames, channels: 2, sampleRate: 48_000), to: path, format)
    return path
  }

  private func window() throws -> WaveformWindow {
    let extent = WaveformExtent(
      sampleRate: 48_000, channels: 2, availableFrames: 100_000, totalFrames: 100_000, isComplete: true)
    return try WaveformWindow(WaveformQuery(start: 1, end: 1.5, resolution: .scale(10)), of: extent)
  }

  private func fileNumber(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? Int
  }

  @Test(arguments: [(AudioContainer.mp3, AudioCodec.mp3), (.ogg, .vorbis), (.ogg, .opus), (.flac, .flacS16)])
  func theFirstSliceStoresAMapThatTheNextLoads(container: AudioContainer, codec: AudioCodec) throws {
    let path = try make(container, codec)
    let plain = try SampleWindow(path: path).slice(window())
    #expect(!FileManager.default.fileExists(atPath: SampleWindow.mapPath(of: path)))
    #expect(try SampleWindow(recordingAt: path).slice(window()) == plain)
    let map = SampleWindow.mapPath(of: path)
    let (kept, number) = (try contents(map), try fileNumber(map))
    #expect(try SampleWindow(recordingAt: path).slice(window()) == plain)
    #expect(try fileNumber(map) == number)
    // An invalid map is made again.
    for wrong in [[], Array(kept.dropLast(8)), Array(kept.dropLast()) + [99]] {
      _ = try folder.file(URL(fileURLWithPath: map).lastPathComponent, wrong)
      #expect(try SampleWindow(recordingAt: path).slice(window()) == plain)
      #expect(try contents(map) == kept)
    }
  }

  @Test(
    "a long window decoded on two cores matches decoding from the start",
    arguments: [(AudioContainer.mp3, AudioCodec.mp3), (.ogg, .vorbis), (.ogg, .opus), (.flac, .flacS16)])
  func halvesMeet(container: AudioContainer, codec: AudioCodec) throws {
    let path = try make(container, codec, frames: 300_000)
    var reader = try AudioReader(path: path)
    var all: [Int16] = []
    while reader.readInt16({ span in for index in span.indices { all.append(span[index]) } }) > 0 {}
    let extent = WaveformExtent(
      sampleRate: 48_000, channels: 2, availableFrames: 300_000, totalFrames: 300_000, isComplete: true)
    for (start, end) in [(0.0, 6.0), (0.3, 2), (1.01, 5.9)] {
      let window = try WaveformWindow(WaveformQuery(start: start, end: end, resolution: .scale(100)), of: extent)
      let range = window.frameRange
      #expect(range.count > 65_536)
      let part = Array(all[Int(range.lowerBound) * 2..<Int(range.upperBound) * 2])
      #expect(try SampleWindow(path: path).slice(window) == WaveformSlice(window, samples: part.span))
    }
  }

  @Test func analyzingLeavesTheMapThatASliceWouldLeave() throws {
    let path = try make(.mp3, .mp3)
    _ = try AnalyzeRecording(source: path, pyramid: folder("p"), soundMap: folder("map")).run { _ in }
    _ = try SampleWindow(recordingAt: path).slice(window())
    #expect(try contents(folder("map")) == contents(SampleWindow.mapPath(of: path)))
  }

  @Test func quicklyReadFilesHaveNoMap() throws {
    for codec in [AudioCodec.pcmS16, .pcmF32] {
      let path = try make(.wav, codec)
      _ = try AnalyzeRecording(source: path, pyramid: folder("p"), soundMap: folder("map")).run { _ in }
      _ = try SampleWindow(recordingAt: path).slice(window())
      #expect(!FileManager.default.fileExists(atPath: folder("map")))
      #expect(!FileManager.default.fileExists(atPath: SampleWindow.mapPath(of: path)))
    }
  }

  @Test func aMapThatCannotBeStoredIsNotAnError() throws {
    let path = try make(.ogg, .vorbis)
    let slice = try SampleWindow(path: path, mapPath: folder("gone") + "/map").slice(window())
    #expect(try slice.length == window().pixelCount)
    let analysis = try AnalyzeRecording(
      source: path, pyramid: folder("p"), soundMap: folder("gone") + "/map"
    ).run { _ in }
    #expect(analysis.frames == 100_000)
  }
}
