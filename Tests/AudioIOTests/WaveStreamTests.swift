import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// Parts of files as WAV files.
@Suite struct WaveStreamTests {
  private static let frames = 9000

  /// All bytes of the WAV file from `place` on.
  private static func wave(_ path: String, _ part: Range<Int64>, from place: Int64 = 0) throws -> [UInt8] {
    var stream = try WaveStream(path: path, map: SoundMap(path: path), frames: part)
    var all: [UInt8] = []
    while true {
      let piece = try stream.bytes(from: place + Int64(all.count))
      if piece.isEmpty { return all }
      all += piece
    }
  }

  @Test(
    "a part has exactly the samples of the whole, with the source's depth",
    arguments: [
      (AudioContainer.wav, AudioCodec.pcmU8, AudioCodec.pcmU8), (.wav, .pcmS16, .pcmS16), (.aiff, .pcmS24, .pcmS24),
      (.wav, .pcmS32, .pcmS32), (.wav, .pcmF32, .pcmF32), (.wav, .pcmF64, .pcmF64), (.rf64, .pcmS24, .pcmS24),
      (.flac, .flacS16, .pcmS16), (.flac, .flacS24, .pcmS24), (.caf, .alac24, .pcmS24), (.ogg, .vorbis, .pcmS16),
      (.mp3, .mp3, .pcmS16), (.au, .muLaw, .pcmS16),
    ])
  func exact(container: AudioContainer, codec: AudioCodec, written: AudioCodec) throws {
    let folder = try TemporaryFolder()
    let source = AudioFormat(container: container, codec: codec, sampleRate: 44_100, channels: 2)
    try encode(swell(frames: Self.frames, channels: 2, sampleRate: 44_100), to: folder("a"), source)
    let total = Int64(try decode(folder("a")).count / 2)
    for part in [0..<total, 1..<2, 1234..<7001] as [Range<Int64>] {
      let made = try folder.file("part.wav", Self.wave(folder("a"), part))
      #expect(try format(of: made).codec == written)
      let range = Int(2 * part.lowerBound)..<Int(2 * part.upperBound)
      #expect(try decode(made) == Array(decode(folder("a"))[range]), "\(part)")
      guard codec.sampleKind != .lossy else { continue }
      #expect(try decodeFloat(made) == Array(decodeFloat(folder("a"))[range]), "\(part)")
    }
  }

  @Test("32-bit integers and 64-bit floats keep the bits that a float has no room for")
  func allBits() throws {
    let folder = try TemporaryFolder()
    let integers: [Int32] = [1, -1, .max, .min, 0x1234_5677, -0x1234_5679]
    let data = integers.flatMap { little(UInt64(UInt32(bitPattern: $0)), 4) }
    _ = try folder.file("i", riff(waveFormat(bits: 32) + chunk("data", data)))
    #expect(try Self.wave(folder("i"), 1..<5).suffix(16) == data[4..<20])
    let doubles = [0.1, -0.1, 1e-300, 0.123456789012345, -1].flatMap { little($0.bitPattern, 8) }
    _ = try folder.file("d", riff(waveFormat(tag: 3, bits: 64) + chunk("data", doubles)))
    #expect(try Self.wave(folder("d"), 0..<5).suffix(40) == doubles[...])
  }

  @Test("reading can begin at any byte, and an odd number of bytes is padded")
  func anyByte() throws {
    let folder = try TemporaryFolder()
    let source = AudioFormat(container: .flac, codec: .flacS24, sampleRate: 8000, channels: 3)
    try encode(swell(frames: 50, channels: 3, sampleRate: 8000), to: folder("a"), source)
    let whole = try Self.wave(folder("a"), 7..<16)
    #expect(whole.count == 44 + 9 * 9 + 1 && whole.last == 0)
    for place in whole.indices {
      #expect(try Self.wave(folder("a"), 7..<16, from: Int64(place)) == Array(whole[place...]), "\(place)")
    }
  }

  @Test("joined files are continued, and 32 channels keep their order")
  func joined() throws {
    let folder = try TemporaryFolder()
    let mp3 = AudioFormat(container: .mp3, codec: .mp3, sampleRate: 44_100, channels: 1)
    try encode(swell(frames: 6000, channels: 1, sampleRate: 44_100), to: folder("one"), mp3)
    try encode(swell(frames: 5000, channels: 1, sampleRate: 44_100, peak: 0.3), to: folder("two"), mp3)
    let both = try folder.file("both", contents(folder("one")) + contents(folder("two")))
    let whole = try decode(both)
    let part = try folder.file("part.wav", Self.wave(both, 5000..<Int64(whole.count) - 100))
    #expect(try decode(part) == Array(whole[5000..<whole.count - 100]))
    let wide = AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 32)
    try encode(swell(frames: 3000, channels: 32, sampleRate: 8000), to: folder("wide"), wide)
    let cut = try folder.file("cut.wav", Self.wave(folder("wide"), 100..<2900))
    #expect(try decode(cut) == Array(decode(folder("wide"))[3200..<92_800]))
  }

  @Test("beyond 4 GiB, the header is RF64's")
  func long() throws {
    let frames: Int64 = 1 << 31
    let header = try WaveHeader(.pcmS24, sampleRate: 48_000, channels: 2, frames: frames)
    #expect(header.fileBytes == 80 + 6 * frames)
    #expect(header.bytes.starts(with: Array("RF64".utf8) + [255, 255, 255, 255] + Array("WAVEds64".utf8)))
    #expect(Array(header.bytes[20..<36]) == little(UInt64(header.fileBytes - 8), 8) + little(UInt64(6 * frames), 8))
    // Only the sizes can be long; libsndfile reads them from the header.
    let folder = try TemporaryFolder()
    let file = try folder.file("long.wav", header.bytes + [UInt8](repeating: 1, count: 600))
    #expect(try AudioReader(path: file).format.container == .rf64)
    #expect(try WaveHeader(.pcmS24, sampleRate: 48_000, channels: 2, frames: 1).bytes.starts(with: Array("RIFF".utf8)))
    #expect(throws: AudioIOError.self) {
      try WaveHeader(.pcmS24, sampleRate: 48_000, channels: 30_000, frames: 1)
    }
  }

  @Test(
    "a head that is sent before the end says how long the sound will be",
    arguments: [
      (AudioContainer.flac, AudioCodec.flacS16, 44_100, 2), (.mp3, .mp3, 44_100, 2), (.mp3, .mp3, 48_000, 1),
      (.mp3, .mp3, 22_050, 2), (.mp3, .mp3, 8000, 1), (.ogg, .vorbis, 44_100, 2),
    ])
  func head(container: AudioContainer, codec: AudioCodec, rate: Int, channels: Int) throws {
    let folder = try TemporaryFolder()
    let target = AudioFormat(container: container, codec: codec, sampleRate: rate, channels: channels)
    for frames in [2000, 11_519, 11_520, 12_097, 30_000] {
      try encode(swell(frames: frames, channels: channels, sampleRate: rate), to: folder("a"), target)
      let finished = try contents(folder("a"))
      var sent = finished
      if container == .flac {
        for index in 22..<26 { sent[index] = 0 }
        sent[21] &= 0xF0
      } else if container == .mp3, let header = MPEGFrameHeader(sent.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }) {
        // What LAME writes first.
        for index in 4..<header.length { sent[index] = 0 }
      }
      StreamedHeader.complete(&sent, frames: Int64(frames), sampleRate: rate)
      let path = try folder.file("sent", sent)
      #expect(try decode(path) == decode(folder("a")), "\(frames)")
      #expect(try AudioReader(path: path).claimedFrames == AudioReader(path: folder("a")).claimedFrames, "\(frames)")
    }
  }
}
