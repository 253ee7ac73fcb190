import Foundation
import Randomness
import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// MPEG audio that begins with other bytes, and what only looks like it.
struct FoundMPEGTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("random bytes are not sound, even if some look like a frame")
  func random() throws {
    var random = TestRandom(for: 313)
    for _ in 0..<40 {
      var bytes = (0..<9000).flatMap { _ -> [UInt8] in
        let word = random.next()
        return (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
      }
      // Two frames of 417 bytes: 128 kbit/s at 44.1 kHz.
      let header: [UInt8] = [0xFF, 0xFB, 0x90, 0x64]
      for place in [3000, 3417] { bytes.replaceSubrange(place..<place + 4, with: header) }
      let path = try folder.file("random", bytes)
      #expect(throws: AudioIOError.self) { _ = try AudioReader(path: path) }
    }
  }

  @Test("a cut stream with a little damage is sound; frames amid a tenth of other bytes are not")
  func amid() throws {
    let frame: [UInt8] = [0xFF, 0xFD, 0x84, 0x04] + [UInt8](repeating: 0, count: 380)
    func file(every count: Int) -> [UInt8] {
      (0..<300).reduce(into: [1, 2, 3]) { bytes, number in
        bytes += frame + (number % count == 0 ? [UInt8](repeating: 7, count: 90) : [])
      }
    }
    #expect(try AudioReader(path: folder.file("damaged", file(every: 60))).format.channels == 2)
    #expect(throws: AudioIOError.self) { _ = try AudioReader(path: folder.file("amid", file(every: 2))) }
  }

  @Test("programs, texts, and tables are not sound")
  func structured() throws {
    let program = try Data(contentsOf: URL(fileURLWithPath: "/proc/self/exe")).prefix(1 << 20)
    let text = Array(String(repeating: "The quick brown fox jumps over the lazy dog.\n", count: 3000).utf8)
    let others: [[UInt8]] = [
      text, [0xFF, 0xFE] + text.flatMap { [$0, 0] as [UInt8] }, [UInt8](repeating: 0xFF, count: 100_000),
      Array(program),
      Array(program.dropFirst(20_000)), (0..<100_000).map { UInt8(truncatingIfNeeded: $0) },
      Array("%PDF-1.7\n".utf8) + Array(program.dropFirst(50_000)),
    ]
    for (number, bytes) in others.enumerated() {
      let path = try folder.file("other", bytes)
      #expect(throws: AudioIOError.self, "\(number)") { _ = try AudioReader(path: path) }
    }
  }

  @Test("the bit rate varies if it does among the frames of sound, whatever the counting frame has")
  func rates() throws {
    func frame(_ rate: UInt8, _ length: Int, _ content: [UInt8] = []) -> [UInt8] {
      let start = [0xFF, 0xFB, rate, 0xC4] + content
      return start + [UInt8](repeating: 0, count: length - start.count)
    }
    // Mono at 44.1 kHz with 64, 128 and 160 kbit/s.
    let mark = Array("Info".utf8) + [0, 0, 0, 1, 0, 0, 0, 100]
    let count = frame(0x50, 208, [UInt8](repeating: 0, count: 17) + mark)
    let (low, high) = (frame(0x90, 417), frame(0xA0, 522))
    for (pair, varies) in [(low + low, false), (low + high, true)] {
      let path = try folder.file("rates", count + (0..<50).flatMap { _ in pair })
      #expect(try SoundMap(path: path).variesInRate == varies)
    }
  }

  @Test("sound begins where players begin: with frames that agree, and with the delay if other bytes precede its count")
  func beginning() throws {
    let format = AudioFormat(container: .mp3, codec: .mp3, sampleRate: 48_000, channels: 1)
    try encode(swell(frames: 120_000, channels: 1, sampleRate: 48_000), to: folder("made"), format)
    let bytes = try contents(folder("made"))
    let word = bytes[0..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    let first = try #require(MPEGFrameHeader(word)).length
    let (tag, zeros) = (Array("ID3".utf8) + [3, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0], [UInt8](repeating: 0, count: 10))
    /// Returns the bytes, with the frame at `place` marked as an original if it wasn't, and the reverse.
    func other(_ place: Int) -> [UInt8] { bytes[..<(place + 3)] + [bytes[place + 3] ^ 4] + bytes[(place + 4)...] }
    let sound = Array(bytes[first...])
    let all = try decode(folder.file("sound", sound)).count
    // The frames of ffmpeg 5.1, without its trimming of the end.
    for (file, frames) in [
      (tag + bytes, 120_000), (tag + zeros + bytes, all + 1152), (zeros + bytes, all + 1152),
      (tag + zeros + other(0), all), (tag + other(0), 120_000), (Array(other(first)[first...]), all - 1152),
    ] {
      let path = try folder.file("a", file)
      let (whole, middle) = (try decode(path), try decode(path, from: 70_000))
      #expect(whole.count == frames && whole.suffix(frames - 70_000) == middle[...])
    }
  }

  @Test("what follows the last frame doesn't matter, however much it is")
  func trailing() throws {
    let format = AudioFormat(container: .mp3, codec: .mp3, sampleRate: 48_000, channels: 1)
    try encode(swell(frames: 120_000, channels: 1, sampleRate: 48_000), to: folder("made"), format)
    let bytes = try contents(folder("made"))
    var random = TestRandom(for: 11)
    for garbage in [
      [UInt8](repeating: 0, count: 900_000), (0..<900_000).map { _ in UInt8(truncatingIfNeeded: random.next()) },
    ] {
      let path = try folder.file("a", bytes + garbage)
      let equal = try decode(path) == decode(folder("made"))
      let findings = try SoundMap(path: path).findings
      #expect(equal && findings.trailingBytes == 900_000 && findings.foreignBytes == 0 && !findings.lacksEnd)
    }
  }

  @Test("an unseekable codec is decoded up to the target", arguments: [AudioCodec.gsm610, .g721])
  func decodedFromStart(_ codec: AudioCodec) throws {
    let format = AudioFormat(container: .wav, codec: codec, sampleRate: 8000, channels: 1)
    try encode(swell(frames: 9000, channels: 1, sampleRate: 8000), to: folder("a"), format)
    var all: [Int16] = []
    var reader = try AudioReader(path: folder("a"))
    while reader.readInt16({ span in for index in span.indices { all.append(span[index]) } }) > 0 {}
    try reader.seek(to: 4321)
    var part: [Int16] = []
    _ = reader.readInt16(upTo: 100) { span in for index in span.indices { part.append(span[index]) } }
    #expect(part == Array(all[4321..<4421]))
    #expect(throws: AudioIOError.seekFailed(frame: 1_000_000)) { try reader.seek(to: 1_000_000) }
  }
}
