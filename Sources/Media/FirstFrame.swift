import Terms

// Raw AAC and AC-3 files consist only of frames. A file cut out of a stream begins in the middle of one; others begin
// with zeros, a byte order mark, or an ID3v1 tag. The first frame is found the way decoders do it: a header whose frame
// is followed by a similar one.
//
//   ADTS (ISO 13818-7 §6.2)      sync 12, version 1, layer 2 (0), protection 1, profile 2, rate 4, private 1, channels
//                                3, 4 other bits, length 13
//   AC-3 (ETSI TS 102 366 §4.3)  sync 16, checksum 16, rate 2, size 6, version 5 (up to 10)
//   E-AC-3 (the same, annex E)   sync 16, type 2, substream 3, size 11 (in words, less one), rate 2, blocks 2, mode 3,
//                                low frequencies 1, version 5 (11 to 16)

/// The first frame of a raw stream, within the first 64 KiB after an ID3 tag.
struct FirstFrame: Equatable {
  let demuxer: Demuxer
  /// Bytes before it that belong neither to a frame nor to an ID3v2 tag.
  let leadingBytes: Int
  /// Its offset in the file.
  let offset: Int

  /// Maximum number of bytes before it.
  static let searchLimit = 65_536
  /// Maximum length of a frame: ADTS has 13 bits for it.
  private static let frameLimit = 8192

  /// Fails if there is none, or if the file is of another kind, even one that may contain such frames.
  init?(_ start: FileStart) {
    let begin = start.tagsLength
    let head = start.bytes(at: begin, count: 264)
    guard !Self.isOtherKind(head) else { return nil }
    // Includes two frames after the last position where the first may begin.
    let bytes = start.bytes(at: begin, count: Self.searchLimit + 3 * Self.frameLimit)
    for place in 0..<min(Self.searchLimit, bytes.count) where bytes[place] == 0xFF || bytes[place] == 0x0B {
      guard let first = Header(bytes[place...]), Self.goesOn(first, from: place, in: bytes) else { continue }
      (demuxer, leadingBytes, offset) = (first.demuxer, place, begin + place)
      return
    }
    return nil
  }

  /// Whether a second header follows the first frame and a third one the second frame, unless the file ends. Only a
  /// frame at its beginning may be alone.
  private static func goesOn(_ first: Header, from begin: Int, in bytes: [UInt8]) -> Bool {
    var (place, header) = (begin, first)
    for count in 1...2 {
      place += header.length
      guard place < bytes.count, let next = Header(bytes[place...]) else {
        return (count == 2 || begin == 0) && place + 8 > bytes.count
      }
      guard next.identity == first.identity, next.demuxer == first.demuxer else { return false }
      header = next
    }
    return true
  }

  /// Whether this is a sound format handled elsewhere, or an archive, picture, or program, which may contain raw sound.
  static func isOtherKind(_ head: [UInt8]) -> Bool {
    marks.contains { head.starts(with: $0) } || head.dropFirst(257).starts(with: "ustar".utf8)
  }

  private static let marks: [[UInt8]] =
    ["RIFF", "RIFX", "RF64", "FORM", "riff", ".snd", "fLaC", "OggS", "caff", "NIST", "MThd", "%PDF-", "GIF8", "Rar!"]
    .map { Array($0.utf8) } + [
      [0x50, 0x4B, 0x03, 0x04], [0xFF, 0xD8, 0xFF], [0x89, 0x50, 0x4E, 0x47], [0x7F, 0x45, 0x4C, 0x46], [0x4D, 0x5A],
      [0x1F, 0x8B], [0xFD, 0x37, 0x7A, 0x58], [0x28, 0xB5, 0x2F, 0xFD], [0x37, 0x7A, 0xBC, 0xAF], Array("BZh".utf8),
      Array("SQLite format 3".utf8), Array("MATLAB".utf8),
    ]
}

extension FirstFrame {
  /// The length of a frame, and the properties it shares with the others.
  private struct Header {
    let demuxer: Demuxer
    /// Length in bytes, including this header.
    let length: Int
    let identity: UInt32

    init?(_ bytes: ArraySlice<UInt8>) {
      let head = Array(bytes.prefix(8))
      guard head.count == 8 else { return nil }
      if head[0] == 0xFF, head[1] & 0xF6 == 0xF0 {
        self.init(adts: head)
      } else if head[0] == 0x0B, head[1] == 0x77 {
        self.init(ac3: head)
      } else {
        return nil
      }
    }

    private init?(adts head: [UInt8]) {
      length = Int(head[3] & 3) << 11 | Int(head[4]) << 3 | Int(head[5] >> 5)
      // Three of the sixteen rates are reserved.
      guard length > 7, head[2] >> 2 & 15 < 13 else { return nil }
      demuxer = .aac
      identity = UInt32(head[1]) << 16 | UInt32(head[2] & 0xFD) << 8 | UInt32(head[3] & 0xC0)
    }

    private init?(ac3 head: [UInt8]) {
      let version = head[5] >> 3
      let rate = Int(head[4] >> 6)
      identity = UInt32(version) << 8 | UInt32(rate)
      if (11...16).contains(version) {
        demuxer = .eac3
        length = 2 * (Int(head[2] & 7) << 8 | Int(head[3])) + 2
        guard length > 8 else { return nil }
      } else {
        let size = Int(head[4] & 63)
        guard version <= 10, rate < 3, size < 38 else { return nil }
        demuxer = .ac3
        // At 48, 44.1, and 32 kHz, each frame has 1536 frames of sound; an odd size has one more word at 44.1.
        let bits = Self.bitRates[size / 2] * 1000 * 1536
        length = 2 * (rate == 1 ? bits / (16 * 44_100) + size % 2 : bits / (16 * (rate == 0 ? 48_000 : 32_000)))
      }
    }

    /// In kbit/s.
    private static let bitRates = [
      32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
    ]
  }
}

extension FileStart {
  /// Total length in bytes of the ID3v2 tags at the file's beginning.
  var tagsLength: Int {
    var offset = 0
    for _ in 0..<16 {
      let next = tagLength(at: offset)
      guard next > 0, offset + next < length else { break }
      offset += next
    }
    return offset
  }
}
