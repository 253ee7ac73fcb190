import Foundation
import SoundFiles
import Testing

@testable import AudioIO

/// Headers of WAV files whose length is only known at the end.
struct WaveHeaderTests {
  @Test(
    "a header of fixed length has the same for any number of frames, and is the one of an RF64 file from 4 GiB on",
    arguments: [0, 1, 999, 536_870_900, 536_870_912, 1 << 33])
  func fixed(frames: Int64) throws {
    let header = try WaveHeader(.pcmF32, sampleRate: 44_100, channels: 2, frames: frames, isFixed: true)
    #expect(header.bytes.count == 92 && header.sampleBytes == 8 * frames)
    let isLong = header.fileBytes - 8 > 0xFFFF_FFFE
    #expect(Array(header.bytes[..<4]) == Array((isLong ? "RF64" : "RIFF").utf8) && isLong == (frames >= 536_870_912))
    #expect(Array(header.bytes[12..<16]) == Array((isLong ? "ds64" : "JUNK").utf8))
    let size = header.bytes[(isLong ? 20 : 4)..<(isLong ? 28 : 8)].reversed().reduce(0) { $0 << 8 | Int64($1) }
    #expect(size == header.fileBytes - 8)
  }

  @Test("a file is RF64 from the first length on that 32 bits don't hold")
  func longest() throws {
    for (frames, mark) in [(2_147_483_629, "RIFF"), (2_147_483_630, "RF64")] as [(Int64, String)] {
      let header = try WaveHeader(.pcmS16, sampleRate: 8000, channels: 1, frames: frames)
      #expect(header.bytes.starts(with: mark.utf8), "\(frames)")
    }
  }

  @Test("the last frames of more than 4 GiB are read")
  func long() throws {
    let frames: Int64 = 536_870_912 + 3
    let header = try WaveHeader(.pcmF32, sampleRate: 48_000, channels: 2, frames: frames, isFixed: true)
    let folder = try TemporaryFolder()
    let file = try folder.file("long.wav", header.bytes)
    let handle = try #require(FileHandle(forWritingAtPath: file))
    // Takes no room on a file system with sparse files.
    try handle.truncate(atOffset: UInt64(header.fileBytes - 4))
    try handle.seekToEnd()
    try handle.write(contentsOf: little(UInt64(Float(0.5).bitPattern), 4))
    let reader = try AudioReader(path: file)
    #expect(reader.format.container == .rf64 && reader.claimedFrames == frames)
    #expect(try decodeFloat(file, from: frames - 2) == [0, 0, 0, 0.5])
  }

  @Test("libsndfile reads the samples after it")
  func reads() throws {
    let folder = try TemporaryFolder()
    let samples: [Float] = [0.5, -0.25, 1.5, -3, 0, 1e-9]
    let header = try WaveHeader(.pcmF32, sampleRate: 48_000, channels: 2, frames: 3, isFixed: true)
    let file = try folder.file("a.wav", header.bytes + samples.flatMap { little(UInt64($0.bitPattern), 4) })
    let found = try format(of: file)
    #expect(found.container == .wav && found.codec == .pcmF32 && found.sampleRate == 48_000 && found.channels == 2)
    #expect(try decodeFloat(file) == samples)
  }
}
