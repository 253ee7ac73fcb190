// A Musepack file's length, which ffmpeg 5.1 gets wrong for version 8.
//
//   version 7   "MP+", version, frames of 1152 samples (32 bits, little-endian)
//   version 8   "MPCK", then packets: two letters, size including both; sizes and counts have seven bits per
//               byte, the highest set if another follows. "SH": checksum (32 bits), version (8), samples, samples of
//               silence at the start, rate (3 bits) …

/// The number of samples per channel that a Musepack file promises.
enum MusepackLength {
  /// Reads it from the file at `path`; returns nil if it isn't given.
  static func samples(path: String) -> Int64? {
    guard let file = FileStart(path: path) else { return nil }
    let head = file.bytes(at: file.tagsLength, count: 64)
    if head.starts(with: "MP+".utf8), head.count >= 8 {
      return 1152 * head[4..<8].reversed().reduce(0) { $0 << 8 | Int64($1) }
    }
    guard head.starts(with: "MPCKSH".utf8) else { return nil }
    var rest = head.dropFirst(6)
    guard number(&rest) != nil, rest.count > 5 else { return nil }
    rest = rest.dropFirst(5)
    guard let samples = number(&rest), let silence = number(&rest) else { return nil }
    return max(samples - silence, 0)
  }

  private static func number(_ bytes: inout ArraySlice<UInt8>) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<8 {
      guard let byte = bytes.popFirst() else { return nil }
      value = value << 7 | Int64(byte & 0x7F)
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }
}
