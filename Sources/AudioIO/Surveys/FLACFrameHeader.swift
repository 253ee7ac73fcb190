// A frame's header, RFC 9639 section 9.1 (in bits, from the highest): sync code 15 (0x7FFC), blocking strategy 1 (0:
// all frames but the last have the same size, and the coded number is the frame's; 1: sizes vary, and it is the first
// sample's), block size 4, sample rate 4, channels 4, depth 3, reserved 1 (0). Then the number in 1 … 7 bytes, coded
// like UTF-8; the block size less one in 1 or 2 bytes if its four bits say so (6, 7); the sample rate in 1 or 2 bytes
// likewise (12; 13, 14); and a checksum of all these: CRC-8, polynomial x^8 + x^2 + x + 1, starting from 0.
//
// A frame ends with a CRC-16 of all its preceding bytes, polynomial x^16 + x^15 + x^2 + 1, starting from 0, high byte
// first. So the CRC of a whole frame including its checksum is 0.

/// The header of a FLAC frame.
struct FLACFrameHeader: Sendable {
  /// Maximum length of a header, in bytes.
  static let lengthLimit = 16

  /// Whether frame sizes vary, so that `number` counts samples.
  let isVariable: Bool
  /// Samples per channel.
  let blockSize: Int64
  /// The number of the frame, or of its first sample if `isVariable`.
  let number: Int64
  /// Length of the header, in bytes.
  let length: Int

  /// Fails if `bytes` don't begin with a header that has a valid checksum.
  init?(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    guard rest.count >= 6, rest.popFirst() == 0xFF, let second = rest.popFirst(), second & 0xFE == 0xF8,
      let sizes = rest.popFirst(), let shape = rest.popFirst(), shape & 1 == 0, shape >> 4 <= 10, shape >> 1 & 7 != 3,
      let number = Self.codedNumber(&rest), let blockSize = Self.blockSize(sizes >> 4, &rest),
      Self.passSampleRate(sizes & 15, &rest), let checksum = rest.popFirst()
    else { return nil }
    length = bytes.count - rest.count
    guard bytes.prefix(length - 1).reduce(0, { Self.crc8[Int($0 ^ $1)] }) == checksum else { return nil }
    isVariable = second & 1 == 1
    (self.number, self.blockSize) = (number, blockSize)
  }

  /// Parses the coded number (section 9.1.5).
  private static func codedNumber(_ rest: inout ArraySlice<UInt8>) -> Int64? {
    guard let first = rest.popFirst() else { return nil }
    let ones = (~first).leadingZeroBitCount
    if ones == 0 { return Int64(first) }
    guard (2...7).contains(ones) else { return nil }
    var number = Int64(first & (0xFF >> UInt8(ones)))
    for _ in 1..<ones {
      guard let next = rest.popFirst(), next & 0xC0 == 0x80 else { return nil }
      number = number << 6 | Int64(next & 0x3F)
    }
    return number
  }

  /// Parses the block size (sections 9.1.1 and 9.1.6).
  private static func blockSize(_ code: UInt8, _ rest: inout ArraySlice<UInt8>) -> Int64? {
    switch code {
    case 0: return nil
    case 1: return 192
    case 2...5: return 144 << Int64(code)
    case 6: return rest.popFirst().map { Int64($0) + 1 }
    case 7:
      guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
      return Int64(high) << 8 + Int64(low) + 1
    default: return 1 << Int64(code)
    }
  }

  /// Skips the sample rate (sections 9.1.2 and 9.1.7).
  private static func passSampleRate(_ code: UInt8, _ rest: inout ArraySlice<UInt8>) -> Bool {
    let count = code == 12 ? 1 : code > 12 ? 2 : 0
    guard code != 15, rest.count >= count else { return false }
    rest.removeFirst(count)
    return true
  }

  private static let crc8: [UInt8] = (0..<256).map { byte in
    (0..<8).reduce(UInt8(byte)) { sum, _ in sum << 1 ^ (sum >> 7 == 1 ? 7 : 0) }
  }

  private static let crc16: [UInt16] = (0..<256).map { byte in
    (0..<8).reduce(UInt16(byte) << 8) { sum, _ in sum << 1 ^ (sum >> 15 == 1 ? 0x8005 : 0) }
  }

  /// Continues the checksum of a frame with one byte.
  static func crc16(_ sum: UInt16, _ byte: UInt8) -> UInt16 { sum << 8 ^ crc16[Int(UInt8(sum >> 8) ^ byte)] }
}
