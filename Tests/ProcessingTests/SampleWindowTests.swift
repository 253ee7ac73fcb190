import AudioIO
import Foundation
import SoundFiles
import Terms
import Testing
import Waveform

@testable import Processing

/// Slices from samples, and the sound maps that save a reader reading the whole file.
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

  @Test func analyzingLeavesAMapThatASliceCanUse() throws {
    let path = try make(.mp3, .mp3)
    _ = try AnalyzeRecording(source: path, pyramid: folder("p"), soundMap: folder("map")).run { _ in }
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: folder("map")))
    let map = try #require(try SoundMap(path: path, keptIn: file.fileDescriptor))
    #expect(try SampleWindow(path: path, map: map).slice(window()) == SampleWindow(path: path).slice(window()))
  }

  @Test func quicklyReadFilesHaveNoMap() throws {
    for codec in [AudioCodec.pcmS16, .pcmF32] {
      let path = try make(.wav, codec)
      _ = try AnalyzeRecording(source: path, pyramid: folder("p"), soundMap: folder("map")).run { _ in }
      #expect(!FileManager.default.fileExists(atPath: folder("map")))
    }
  }

  @Test func aMapThatCannotBeStoredIsNotAnError() throws {
    let path = try make(.ogg, .vorbis)
    let analysis = try AnalyzeRecording(
      source: path, pyramid: folder("p"), soundMap: folder("gone") + "/map"
    ).run { _ in }
    #expect(analysis.frames == 100_000)
  }
}
