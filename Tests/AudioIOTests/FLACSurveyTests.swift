import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// FLAC files with a wrong length in the header, of which libsndfile alone decodes only a part.
struct FLACSurveyTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func make(
    _ codec: AudioCodec = .flacS16, rate: Int = 44_100, channels: Int = 1, frames: Int, peak: Float = 0.5
  ) throws -> (bytes: [UInt8], samples: [Int16]) {
    let format = AudioFormat(container: .flac, codec: codec, sampleRate: rate, channels: channels)
    let path = folder("made")
    try encode(swell(frames: frames, channels: channels, sampleRate: rate, peak: peak), to: path, format)
    return (try contents(path), try decode(path))
  }

  /// Sets the 36 bits with the number of samples per channel.
  private func claiming(_ frames: UInt64, _ bytes: [UInt8]) -> [UInt8] {
    Array(bytes[..<21]) + [bytes[21] & 0xF0 | UInt8(frames >> 32)] + big(frames & 0xFFFF_FFFF, 4) + bytes[26...]
  }

  /// Returns the offsets of the frames, found by a simple search.
  private func frames(_ bytes: [UInt8]) -> [Int] {
    (42..<bytes.count - 1).filter { bytes[$0] == 0xFF && FLACFrameHeader(bytes[$0...]) != nil }
  }

  /// Decodes the whole file, then from several positions; every seek must give the same samples as decoding from the
  /// start.
  private func decodeSeeking(_ path: String) throws -> [Int16] {
    let (whole, channels) = (try decode(path), try format(of: path).channels)
    let frames = whole.count / channels
    for frame in [1, frames / 3, frames / 2 + 1000, frames - 3000, frames - 1, 0] where (0..<frames).contains(frame) {
      let agrees = try decode(path, from: Int64(frame)) == Array(whole[(frame * channels)...])
      #expect(agrees, "from frame \(frame)")
    }
    return whole
  }

  // MARK: Wrong lengths

  @Test(
    "a header with a wrong length doesn't shorten the sound",
    arguments: [1, 4096, 50_000, 99_999, 100_001, 200_000, 0xF_FFFF_FFFF] as [UInt64])
  func wrongLength(claim: UInt64) throws {
    for (codec, channels) in [(AudioCodec.flacS16, 1), (.flacS16, 2), (.flacS24, 2)] {
      let (bytes, samples) = try make(codec, channels: channels, frames: 100_000)
      let path = try folder.file("b", claiming(claim, bytes))
      let equal = try decodeSeeking(path) == samples
      #expect(equal)
      let map = try SoundMap(path: path)
      #expect(map.frames == 100_000 && map.findings.streams == 1)
      #expect(map.findings.wrongCount == .init(promised: Int64(claim), found: 100_000))
      #expect(!map.findings.lacksEnd && !map.findings.lacksLength)
    }
  }

  @Test("a header without a length is completed")
  func unknownLength() throws {
    let (bytes, samples) = try make(channels: 2, frames: 100_000)
    let path = try folder.file("b", claiming(0, bytes))
    let equal = try decodeSeeking(path) == samples
    let map = try SoundMap(path: path)
    #expect(equal && map.frames == 100_000)
    #expect(map.findings.lacksLength && map.findings.wrongCount == nil)
  }

  @Test("a complete file has no findings, whatever surrounds its frames")
  func whole() throws {
    for (codec, rate, channels, frames) in [
      (AudioCodec.flacS16, 44_100, 2, 100_000), (.flacS24, 96_000, 1, 50_000), (.flacS8, 8000, 1, 4096),
      (.flacS16, 22_050, 8, 9000), (.flacS16, 11_025, 1, 1), (.flacS16, 655_350, 1, 8192),
    ] {
      let (bytes, samples) = try make(codec, rate: rate, channels: channels, frames: frames)
      let tag = Array("ID3".utf8) + [4, 0, 0, 0, 0, 2, 0] + [UInt8](repeating: 0xFF, count: 256)
      let last = Array("TAG".utf8) + [UInt8](repeating: 0xFF, count: 125)
      for (before, after) in [([], []), (tag, []), ([], last), (tag, [UInt8](repeating: 0, count: 100_000))] {
        let path = try folder.file("b", before + bytes + after)
        #expect(try SoundMap(path: path).findings == .init())
        #expect(try SoundMap(path: path).frames == Int64(frames))
        let equal = try decodeSeeking(path) == samples
        #expect(equal)
      }
    }
  }

  @Test("tags and junk around the frames don't hide a wrong length", arguments: [UInt64(0), 20_000, 300_000])
  func junk(claim: UInt64) throws {
    let (bytes, samples) = try make(frames: 60_000)
    var generator = SeededGenerator(state: 1)
    let noise = (0..<300_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let tag = Array("ID3".utf8) + [4, 0, 0, 0, 0, 2, 0] + [UInt8](repeating: 0x55, count: 256)
    // A misplaced frame also has a valid checksum.
    let frames = frames(bytes)
    let stray = Array(bytes[frames[3]..<frames[4]])
    for (before, after) in [
      (tag, []), ([], noise), (tag, Array("TAG".utf8) + [UInt8](repeating: 0, count: 125)), ([], stray),
    ] {
      let path = try folder.file("b", before + claiming(claim, bytes) + after)
      let equal = try decodeSeeking(path) == samples
      let length = try SoundMap(path: path).frames
      #expect(equal && length == 60_000)
      #expect(try !SoundMap(path: path).findings.lacksEnd)
    }
  }

  // MARK: Cut short

  @Test("a truncated file is used up to its last complete frame", arguments: [UInt64(0), 40_000, 100_000])
  func cut(claim: UInt64) throws {
    let (made, samples) = try make(channels: 2, frames: 100_000)
    let (bytes, frames) = (claiming(claim, made), frames(made))
    for (length, whole) in [
      (bytes.count - 1, 24), (frames[20] + 1, 20), (frames[20] + 30, 20), (frames[20] + 2000, 20), (frames[1] - 2, 0),
    ] {
      let path = try folder.file("b", Array(bytes.prefix(length)))
      guard whole > 0 else {
        #expect(try decode(path).isEmpty)
        continue
      }
      let equal = try decodeSeeking(path) == Array(samples.prefix(whole * 4096 * 2))
      #expect(equal, "\(length) bytes")
      let map = try SoundMap(path: path)
      #expect(map.frames == Int64(whole) * 4096 && map.findings.lacksEnd == (length > frames[20] + 4 || whole == 24))
      #expect(map.findings.wrongCount?.promised == (claim == 0 ? nil : Int64(claim)))
    }
    // Cut between two frames, only the count shows it.
    let path = try folder.file("c", Array(bytes.prefix(frames[20])))
    let map = try SoundMap(path: path)
    #expect(map.frames == 20 * 4096 && !map.findings.lacksEnd && (map.findings.wrongCount == nil) == (claim == 0))
  }

  @Test("a stream whose beginning is missing is used from its first remaining frame")
  func beginning() throws {
    let (bytes, samples) = try make(channels: 2, frames: 100_000)
    let frames = frames(bytes)
    let head = Array(bytes[..<frames[0]])
    for lost in [0, 700] {
      let path = try folder.file("b", head + bytes[(frames[5] - lost)...])
      let equal = try decodeSeeking(path) == Array(samples[(5 * 4096 * 2)...])
      let length = try SoundMap(path: path).frames
      #expect(equal && length == 79_520)
      #expect(try SoundMap(path: path).findings.wrongCount == .init(promised: 100_000, found: 79_520))
    }
  }

  @Test("frames missing between others are counted and become silence")
  func gap() throws {
    let (bytes, samples) = try make(frames: 100_000)
    let frames = frames(bytes)
    let path = try folder.file("b", Array(bytes[..<frames[5]]) + bytes[frames[8]...])
    // libFLAC 1.4.2 also silences the frame after them.
    let silence = [Int16](repeating: 0, count: 4 * 4096)
    let equal = try decode(path) == samples[..<(5 * 4096)] + silence + samples[(9 * 4096)...]
    let map = try SoundMap(path: path)
    #expect(equal && map.frames == 100_000 && map.findings.wrongCount == nil)
    #expect(map.findings.missingFrames == 3 * 4096)
  }

  // MARK: Joined

  @Test("joined files are one recording, even if equally long", arguments: [1, 2])
  func joined(channels: Int) throws {
    let first = try make(channels: channels, frames: 60_000)
    let second = try make(channels: channels, frames: 9000, peak: 0.3)
    let short = try make(channels: channels, frames: 1000, peak: 0.2)
    let tag = Array("ID3".utf8) + [4, 0, 0, 0, 0, 2, 0] + [UInt8](repeating: 0x55, count: 256)
    for parts in [[first, first], [first, second, first], [short, first, short, short], [second, second, first]] {
      for between in [[], tag, [UInt8](repeating: 0xFF, count: 5000)] {
        let path = try folder.file("b", Array(parts.map(\.bytes).joined(separator: between)))
        let equal = try decodeSeeking(path) == Array(parts.map(\.samples).joined())
        #expect(equal)
        let findings = try SoundMap(path: path).findings
        #expect(findings.streams == parts.count && findings.wrongCount == nil && !findings.lacksEnd)
      }
    }
  }

  @Test("joined files with wrong headers are decoded completely", arguments: [0, 1000, 0x4000_0000] as [UInt64])
  func joinedWrong(claim: UInt64) throws {
    let made = try make(frames: 60_000)
    let bytes = claiming(claim, made.bytes)
    let path = try folder.file("b", bytes + bytes.dropLast(1) + bytes)
    let cut = made.samples.prefix(14 * 4096)
    let equal = try decodeSeeking(path) == made.samples + cut + made.samples
    #expect(equal)
  }

  @Test("frames appended without their header are decoded completely")
  func headless() throws {
    let (bytes, samples) = try make(channels: 2, frames: 60_000)
    let path = try folder.file("b", bytes + bytes[frames(bytes)[0]...])
    let equal = try decodeSeeking(path) == samples + samples
    #expect(equal)
    let findings = try SoundMap(path: path).findings
    #expect(findings.streams == 2 && findings.wrongCount == .init(promised: 60_000, found: 120_000))
  }

  @Test("joined files with another format are left out and reported")
  func otherShape() throws {
    let long = try make(channels: 2, frames: 60_000)
    let mono = try make(channels: 1, frames: 44_100)
    let slow = try make(rate: 22_050, channels: 2, frames: 22_050)
    let deep = try make(.flacS24, channels: 2, frames: 44_100)
    let path = try folder.file("b", mono.bytes + long.bytes + slow.bytes + deep.bytes + long.bytes)
    let equal = try decodeSeeking(path) == long.samples + long.samples
    #expect(equal)
    let findings = try SoundMap(path: path).findings
    #expect(findings.streams == 2 && findings.streamsLeftOut == 3 && findings.secondsLeftOut == 3)
  }

  // MARK: Frames

  @Test("a stream with variable blocks counts samples")
  func varying() throws {
    let made = try make(frames: 30_000)
    let starts = frames(made.bytes)
    // The same frames, numbered by their first sample.
    var bytes = Array(made.bytes[..<starts[0]])
    for (number, start) in starts.enumerated() {
      let end = number + 1 < starts.count ? starts[number + 1] : made.bytes.count
      let header = try #require(FLACFrameHeader(made.bytes[start...]))
      bytes += renumbered(Array(made.bytes[start..<end]), header, sample: UInt64(number) * 4096)
    }
    for claim in [UInt64(0), 8192, 30_000, 90_000] {
      let path = try folder.file("b", claiming(claim, bytes))
      #expect(try SoundMap(path: path).frames == 30_000)
      let equal = try decodeSeeking(path) == made.samples
      #expect(equal)
    }
  }

  /// Returns the frame with the blocking strategy that counts samples, and with corrected checksums. The original
  /// number has one byte.
  private func renumbered(_ frame: [UInt8], _ header: FLACFrameHeader, sample: UInt64) -> [UInt8] {
    let number: [UInt8] =
      sample < 0x80
      ? [UInt8(sample)]
      : sample < 0x800
        ? [0xC0 | UInt8(sample >> 6), 0x80 | UInt8(sample & 63)]
        : [0xE0 | UInt8(sample >> 12), 0x80 | UInt8(sample >> 6 & 63), 0x80 | UInt8(sample & 63)]
    let start = [0xFF, 0xF9] + frame[2..<4] + number + frame[5..<header.length - 1]
    let checksum = start.reduce(UInt8(0)) { sum, byte in
      (0..<8).reduce(sum ^ byte) { sum, _ in sum << 1 ^ (sum >> 7 == 1 ? 7 : 0) }
    }
    let whole = start + [checksum] + frame[header.length..<frame.count - 2]
    return whole + big(UInt64(whole.reduce(0, FLACFrameHeader.crc16)), 2)
  }

  @Test("a header is parsed as in the RFC")
  func headers() throws {
    // Appendix D.1 and D.2 of RFC 9639, and one with a seven-byte number.
    let examples: [(bytes: [UInt8], isVariable: Bool, size: Int64, number: Int64)] = [
      ([0xFF, 0xF8, 0x69, 0x18, 0x00, 0x00, 0xBF], false, 1, 0),
      ([0xFF, 0xF8, 0x69, 0x98, 0x00, 0x0F, 0x99], false, 16, 0),
      ([0xFF, 0xF8, 0x69, 0x18, 0x01, 0x02, 0xA4], false, 3, 1),
    ]
    for example in examples {
      let header = try #require(FLACFrameHeader(example.bytes[...]))
      #expect(header.isVariable == example.isVariable && header.blockSize == example.size)
      #expect(header.number == example.number && header.length == 7)
      for bit in 0..<example.bytes.count * 8 {
        var wrong = example.bytes
        wrong[bit / 8] ^= 1 << UInt8(bit % 8)
        #expect(FLACFrameHeader(wrong[...]) == nil)
      }
      for length in 0..<7 { #expect(FLACFrameHeader(example.bytes.prefix(length)) == nil) }
    }
  }

  @Test("looking for frames at their likely positions first finds the same as a plain search, even in damaged files")
  func glances() throws {
    // Frames of 10 and of 17 KB, with some of a few bytes in between.
    let even = try make(channels: 2, frames: 200_000).bytes
    let odd = try make(.flacS24, channels: 2, frames: 90_000).bytes
    let format = AudioFormat(container: .flac, codec: .flacS16, sampleRate: 44_100, channels: 2)
    let sound = swell(frames: 150_000, channels: 2, sampleRate: 44_100)
    let varied = sound.enumerated().map { $0 / 50_000 % 2 == 1 ? 0 : $1 }
    _ = try encode(varied, to: folder("varied"), format)
    var generator = SeededGenerator(state: 11)
    for source in [even, odd, try contents(folder("varied")), even + even, even + odd] {
      for damages in 0..<8 {
        var bytes = source
        for _ in 0..<damages {
          let start = Int.random(in: 100..<bytes.count - 20_000, using: &generator)
          let end = start + Int.random(in: 1...20_000, using: &generator)
          switch Int.random(in: 0..<4, using: &generator) {
          case 0: bytes.removeSubrange(start..<end)
          case 1: bytes.replaceSubrange(start..<end, with: [UInt8](repeating: 0xFF, count: end - start))
          case 2: bytes.insert(contentsOf: bytes[start..<end], at: start)
          default: bytes = Array(bytes.prefix(max(end, bytes.count / 2)))
          }
        }
        let path = try folder.file("b", bytes)
        let (quick, plain) = (
          try FLACSurvey(path: path, at: 0), try FLACSurvey(path: path, at: 0, glances: false)
        )
        #expect(quick.isCut == plain.isCut && quick.streamsLeftOut == plain.streamsLeftOut)
        #expect(quick.streams.map(\.body) == plain.streams.map(\.body))
        #expect(quick.streams.map(\.samples) == plain.streams.map(\.samples))
        #expect(quick.streams.map(\.missing) == plain.streams.map(\.missing))
      }
    }
  }

  @Test("hostile bytes end the search harmlessly")
  func hostile() throws {
    let (bytes, _) = try make(channels: 2, frames: 20_000)
    var generator = SeededGenerator(state: 9)
    for _ in 0..<200 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...6, using: &generator) {
        changed[Int.random(in: 4..<200, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      let path = try folder.file("b", Array(changed.prefix(Int.random(in: 4...changed.count, using: &generator))))
      _ = try? decode(path)
    }
  }
}
