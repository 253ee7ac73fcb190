// A frame's header, ISO 11172-3 2.4.1.3 and 13818-3 (bits, from the highest): sync 11, version 2, layer 2, protection
// 1, bit rate 4, sample rate 2, padding 1, private 1, mode 2, …. Its length in bytes, header included:
//   layer I    (12 · bit rate / sample rate + padding) · 4,      384 samples
//   layer II   144 · bit rate / sample rate + padding,           1152 samples
//   layer III  the same; version 2 and 2.5: half of it,          1152 samples; 576

/// The header of an MPEG audio frame: its first four bytes.
package struct MPEGFrameHeader: Sendable {
  /// The four bytes as a big-endian number.
  package let word: UInt32
  /// Length of the frame, in bytes.
  package let length: Int

  /// Fails if the word isn't a header, or doesn't determine the frame's length (as in "free format").
  @inlinable
  @inline(__always)
  package init?(_ word: UInt32) {
    guard word >= 0xFFE0_0000 else { return nil }
    let plain = Int(Self.lengths[Int(word >> 11 & 0x3C0 | word >> 10 & 0x3F)])
    guard plain > 0 else { return nil }
    self.word = word
    let padding = Int(word >> 9 & 1)
    length = plain + (word & 0x6_0000 == 0x6_0000 ? 4 * padding : padding)
  }

  /// Version, layer, sample rate, and whether the frame is mono: the properties shared by all frames of a stream.
  package var identity: UInt32 { word & 0x1E_0C00 | (isMono ? 1 : 0) }

  /// Whether players begin with this frame if `next` follows it. ffmpeg, and the browsers that use it, skip frames
  /// until two agree in these bits: sync, version, layer, sample rate, mode, copyright, original, emphasis.
  package func beginsSound(before next: UInt32) -> Bool { (word ^ next) & 0xFFFE_0CCF == 0 }

  /// The header's bit rate field.
  package var bitRateIndex: UInt32 { word >> 12 & 15 }

  /// 3: version 1; 2: version 2; 0: version 2.5.
  private var version: UInt32 { word >> 19 & 3 }
  private var isFirstVersion: Bool { version == 3 }
  private var isMono: Bool { word & 0xC0 == 0xC0 }
  /// Whether it is a frame of MP3.
  package var isLayerIII: Bool { word & 0x6_0000 == 0x2_0000 }

  /// Number of channels, 1 or 2.
  package var channels: Int { isMono ? 1 : 2 }
  /// In hertz.
  package var sampleRate: Int { Self.rates[Int(word >> 10 & 3)] >> (isFirstVersion ? 0 : version == 2 ? 1 : 2) }

  /// Maximum length of a frame with this layer and sample rate, in bytes.
  package var lengthLimit: Int { (Self(word & 0xFFFF_0FFF | 0x0000_E000)?.length ?? length) + 4 }

  /// Samples of each channel in the frame.
  package var samples: Int {
    switch word >> 17 & 3 {
    case 3: 384
    case 1 where !isFirstVersion: 576
    default: 1152
    }
  }

  /// The position of the side information in a layer III frame, which says how the rest is coded.
  package var sideInformation: Range<Int64> {
    let first: Int64 = isProtected ? 6 : 4
    return first..<first + (isFirstVersion ? (isMono ? 17 : 32) : (isMono ? 9 : 17))
  }

  /// Whether a two-byte checksum follows the header.
  private var isProtected: Bool { word & 0x1_0000 == 0 }

  /// Maximum number of bytes of the preceding frames that a layer III frame may use.
  package var reservoir: Int64 { isFirstVersion ? 511 : 255 }

  /// Returns side information for silence that claims to use `bytes` bytes of the preceding frames. That number is in
  /// its first 9 bits, or 8 in version 2.
  package func silentSideInformation(using bytes: Int64) -> [UInt8] {
    let count = Int(min(bytes, reservoir))
    let start = isFirstVersion ? [UInt8(count >> 1), UInt8(count & 1) << 7] : [UInt8(count)]
    return start + [UInt8](repeating: 0, count: sideInformation.count - start.count)
  }

  /// Returns a frame of silence that contains the number of the frames that follow. It equals them except for its bit
  /// rate, the ninth, which makes it large enough.
  package func countingFrame(_ count: Int64) -> [UInt8] {
    let word = word & 0xFFFF_0CFF | 0x0001_9000
    guard let header = Self(word) else { preconditionFailure("every sample rate has a ninth bit rate") }
    func bytes(_ word: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
    let text = Array("Xing".utf8) + [0, 0, 0, 1] + bytes(UInt32(clamping: count))
    let place = Int(header.sideInformation.upperBound)
    var frame = bytes(word) + [UInt8](repeating: 0, count: header.length - 4)
    frame.replaceSubrange(place..<place + text.count, with: text)
    return frame
  }

  private static let rates = [44_100, 48_000, 32_000, 0]

  /// Length without padding, indexed by the header's version, layer, bit rate, and sample rate; 0 if invalid.
  @usableFromInline static let lengths: [UInt16] = (0..<1024).map { index in
    let (version, layer, bitRateIndex, rateIndex) = (index >> 8, 4 - (index >> 6 & 3), index >> 2 & 15, index & 3)
    guard version != 1, layer != 4, rateIndex != 3, (1...14).contains(bitRateIndex) else { return 0 }
    let isFirst = version == 3
    let sampleRate = rates[rateIndex] >> (isFirst ? 0 : version == 2 ? 1 : 2)
    let bitRate = 1000 * bitRates[isFirst ? layer - 1 : layer == 1 ? 3 : 4][bitRateIndex - 1]
    switch layer {
    case 1: return UInt16(12 * bitRate / sampleRate * 4)
    case 3 where !isFirst: return UInt16(72 * bitRate / sampleRate)
    default: return UInt16(144 * bitRate / sampleRate)
    }
  }

  /// In kbit/s: version 1 layers I, II, III; versions 2 and 2.5 layer I, layers II and III.
  private static let bitRates = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ]
}
