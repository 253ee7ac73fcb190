import Foundation

@testable import Sounds

/// Recordings long enough for a test to watch the work on them, or end it halfway: a worker takes .4 s for the waveform
/// and some seconds to remove noise, in builds for debugging too, because modules that compute are optimized.
enum LongClip {
  static let seconds = 900

  static let rate = 44_100

  /// Stereo FLAC of pink noise.
  static func flac(_ folder: TemporaryFolder, seconds: Int = LongClip.seconds) throws -> [UInt8] {
    let path = folder.file("long.flac")
    let noise = "anoisesrc=duration=\(seconds):sample_rate=\(rate):color=pink:amplitude=0.3:seed=5"
    try Tool.ffmpeg.run([
      "-v", "error", "-y", "-f", "lavfi", "-i", noise, "-ac", "2", "-c:a", "flac", "-compression_level", "0", path,
    ])
    return try contents(path)
  }

  /// Mono WAV, made quickly: one second of noise, repeated.
  static func wave(seconds: Int = LongClip.seconds) -> [UInt8] {
    var noise = NoiseGenerator(seed: 3)
    let second = (0..<rate).map { _ in littleEndian(Int16(noise.next() * 1000)) }.flatMap { $0 }
    var file = WAVFile()
    file.claimedBytes = UInt32(second.count * seconds)
    return file.header + (0..<seconds).flatMap { _ in second }
  }
}
