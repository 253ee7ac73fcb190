import AudioIO
import Foundation
import SoundFiles
import Terms
import Testing
import Waveform
import Workers

@testable import Processing

struct ExportWaveformTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let golden = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("WaveformTests/Golden").path

  @Test(arguments: [
    ("mono-8k-10007f", 256, 16), ("mono-8k-10007f", 512, 8), ("stereo-44k-70001f", 256, 16),
    ("stereo-44k-70001f", 1024, 8), ("six-48k-20000f", 512, 16), ("stereo-24bit-96k-30000f", 4096, 8),
    ("stereo-24bit-96k-30000f", 256, 16), ("mono-one-frame", 256, 16),
  ])
  func aWaveformFileIsAudiowaveformsOwn(name: String, scale: Int, bits: Int) throws {
    let source = "\(Self.golden)/\(name).wav"
    _ = try AnalyzeRecording(source: source, pyramid: folder("p")).run { _ in }
    for channels in [ChannelSelection.mix, .split] {
      let split = channels == .split ? ".split" : ""
      let query = WaveformQuery(
        resolution: .scale(scale), channels: channels, bits: try #require(SampleBits(rawValue: bits)))
      let export = ExportWaveform(source: source, pyramid: folder("p"), query: query)
      for ending in ["dat", "json"] {
        let expected = "\(Self.golden)/\(name).z\(scale).b\(bits)\(split).\(ending)"
        guard FileManager.default.fileExists(atPath: expected) else { continue }
        try export.write(try #require(WaveformFile(path: expected)), to: folder("out"))
        let isSame = try contents(folder("out")) == contents(expected)
        #expect(isSame, "\(expected)")
      }
    }
  }

  @Test func aFinerScaleComesFromTheSamples() throws {
    let samples = (0..<3000).map { Int16(truncatingIfNeeded: $0 * 7919) }
    let source = try folder.file("a.wav", wave(samples))
    _ = try AnalyzeRecording(source: source, pyramid: folder("p")).run { _ in }
    let query = WaveformQuery(start: 0.1, end: 0.2, resolution: .scale(10))
    let slice = try { () throws -> WaveformSlice in
      let file = try PyramidFile(path: folder("p"))
      return try SampleWindow(path: source).slice(try WaveformWindow(query, of: WaveformExtent(finished: file)))
    }()
    let expected = stride(from: 800, to: 1600, by: 10).flatMap { first -> [Int16] in
      let pixel = samples[first..<first + 10]
      return [pixel.min() ?? 0, pixel.max() ?? 0]
    }
    #expect(slice.data == expected)
    try ExportWaveform(source: source, pyramid: folder("p"), query: query).write(.dat, to: folder("out"))
    #expect(try contents(folder("out")).count == 20 + 80 * 4)
  }

  @Test func aQueryThatDoesNotFitWritesNothing() throws {
    let source = try folder.file("a.wav", wave([1, 2, 3]))
    _ = try AnalyzeRecording(source: source, pyramid: folder("p")).run { _ in }
    let query = WaveformQuery(channels: .channel(7))
    #expect(throws: ProcessingError.self) {
      try ExportWaveform(source: source, pyramid: folder("p"), query: query).write(.json, to: folder("out"))
    }
    #expect(!FileManager.default.fileExists(atPath: folder("out")))
  }

  @Test func aFullDiskIsNoticed() throws {
    let source = try folder.file("a.wav", wave([1, 2, 3]))
    _ = try AnalyzeRecording(source: source, pyramid: folder("p")).run { _ in }
    #expect {
      try ExportWaveform(source: source, pyramid: folder("p"), query: WaveformQuery()).write(.dat, to: "/dev/full")
    } throws: {
      if case ProcessingError.system("write", "/dev/full", ENOSPC) = $0 { true } else { false }
    }
  }

  @Test func aNamesExtensionDeterminesTheFormat() {
    #expect(WaveformFile(path: "a/b.c.DAT") == .dat && WaveformFile(path: "x.json") == .json)
    #expect(WaveformFile(path: "x.png") == .png && WaveformFile(path: "x.svg") == .svg)
    #expect(WaveformFile(path: "x.gif") == nil && WaveformFile(path: "") == nil)
  }
}
