import AudioIO
import Foundation
import SoundFiles
import Terms
import Testing

struct WriteFailureTests {
  /// Writes `frames` frames of noise to `path` and returns the error, if any. Noise, because no codec makes it small.
  private func write(_ format: AudioFormat, to path: String, frames: Int) -> AudioIOError? {
    var generator = SeededGenerator(state: 3)
    let samples = (0..<frames * format.channels).map { _ in Float.random(in: -0.9...0.9, using: &generator) }
    do {
      var writer = try AudioWriter(creating: path, format: format, expectedFrames: Int64(frames))
      var quantised: [Int16] = []
      try writer.write(samples.span, quantised: &quantised)
      try writer.finish()
    } catch { return error }
    return nil
  }

  static let kinds =
    AudioReaderTests.kinds + [
      AudioFormat(container: .flac, codec: .flacS8, sampleRate: 24_000, channels: 2)
    ]

  /// Short files fail only when they are closed, long ones while they are written.
  @Test(arguments: kinds, [10, 200_000])
  func aFullDiskIsReportedInEveryFormat(format: AudioFormat, frames: Int) throws {
    let full = AudioIOError.system(operation: "write", errno: ENOSPC)
    #expect(write(format, to: "/dev/full", frames: frames) == full)
  }

  @Test func aMissingFolderIsASystemError() throws {
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 1)
    #expect(write(format, to: "/nowhere/at/all.wav", frames: 1) == .system(operation: "open", errno: ENOENT))
  }

  @Test func aFileThatItsContainerCannotHoldIsNotStarted() throws {
    let folder = try TemporaryFolder()
    let format = AudioFormat(container: .flac, codec: .vorbis, sampleRate: 8000, channels: 1)
    #expect(write(format, to: folder("a.flac"), frames: 1) == .unwritable(format))
    #expect(!FileManager.default.fileExists(atPath: folder("a.flac")))
  }

  @Test func aRecordingTooLongForWaveBecomesRF64() throws {
    let folder = try TemporaryFolder()
    let format = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 2)
    let samples = swell(frames: 100, channels: 2, sampleRate: 8000)
    let short = try encode(samples, to: folder("a.wav"), format, expectedFrames: 800_000_000)
    #expect(short.format.container == .wav)
    let long = try encode(samples, to: folder("b.wav"), format, expectedFrames: 1_000_000_000)
    #expect(long.format.container == .rf64)
    #expect(try contents(folder("b.wav")).starts(with: "RF64".utf8))
    #expect(try decode(folder("b.wav")) == long.quantised)
  }
}
