import AudioIO
import Foundation
import SoundFiles
import Terms
import Testing
import Waveform
import Workers

@testable import Processing

/// Positions beyond 2^31 and 2^32, in files that consist almost entirely of a hole.
struct LongRecordingTests {
  private static let (rate, channels) = (44_100, 2)
  /// 30 hours: 4.8e9 frames, 19 GB.
  private static let frames: Int64 = 30 * 3600 * 44_100

  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// RF64 of silence, except for a few frames that contain their own number.
  private func write(_ marked: [Int64], to path: String) throws {
    let bytes = UInt64(Self.frames) * 4
    let head =
      Array("RF64".utf8) + little(0xFFFF_FFFF, 4) + Array("WAVE".utf8)
      + chunk("ds64", little(bytes + 72, 8) + little(bytes, 8) + little(UInt64(Self.frames), 8) + little(0, 4))
      + waveFormat(channels: Self.channels, sampleRate: UInt64(Self.rate))
      + Array("data".utf8) + little(0xFFFF_FFFF, 4)
    try Data(head).write(to: URL(fileURLWithPath: path))
    let file = try #require(FileHandle(forWritingAtPath: path))
    try file.truncate(atOffset: UInt64(head.count) + bytes)
    for frame in marked {
      try file.seek(toOffset: UInt64(head.count) + UInt64(frame) * 4)
      try file.write(contentsOf: Data(little(UInt64(frame % 30_000) + 1, 2) + little(7, 2)))
    }
    try file.close()
  }

  @Test func samplesAreFoundThirtyHoursIn() throws {
    let marked: [Int64] = [0, 1 << 31, 1 << 32 + 5, Self.frames - 1]
    try write(marked, to: folder("long"))
    var limits = AudioLimits()
    limits.durationSeconds = 100 * 3600
    var reader = try AudioReader(path: folder("long"), limits: limits)
    #expect(reader.claimedFrames == Self.frames)
    let extent = WaveformExtent(
      sampleRate: Self.rate, channels: Self.channels, availableFrames: Self.frames, totalFrames: Self.frames,
      isComplete: true)
    let samples = try SampleWindow(path: folder("long"))
    for frame in marked {
      try reader.seek(to: frame)
      var read: [Int16] = []
      let got = reader.readInt16(upTo: 3) { span in for index in span.indices { read.append(span[index]) } }
      #expect(got == min(3, Int(Self.frames - frame)) && Array(read.prefix(2)) == [Int16(frame % 30_000) + 1, 7])
      #expect(reader.position == frame + Int64(got))
      let start = Double(frame) / Double(Self.rate)
      let query = WaveformQuery(start: start, end: start + 1e-4, resolution: .scale(1), channels: .split)
      let slice = try samples.slice(try WaveformWindow(query, of: extent))
      #expect(slice.window.startFrame == frame)
      #expect(Array(slice.data.prefix(4)) == [Int16(frame % 30_000) + 1, Int16(frame % 30_000) + 1, 7, 7])
    }
    let past = reader.readInt16 { _ in }
    #expect(past == 0)
  }

  @Test func aRecordingPastTheLimitIsRefusedBeforeItIsDecoded() throws {
    try write([], to: folder("long"))
    #expect { try AnalyzeRecording(source: folder("long"), pyramid: folder("p")).run { _ in } } throws: {
      if case ProcessingError.audio(.durationOutOfRange(108_000, 86_400)) = $0 { true } else { false }
    }
  }
}
