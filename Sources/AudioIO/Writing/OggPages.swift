// libsndfile gives each Ogg stream a random serial number. Each encoding of the same sound would have other bytes, and
// ranges of two of them wouldn't fit each other. A page (RFC 3533 §6):
//
//   0 "OggS"   14 serial number (4)   22 CRC (4) of the page with 0 here, polynomial 0x04C11DB7, highest bit first
//   26 number of segments n   27 the lengths of n segments, then the segments

/// Gives the pages of one Ogg stream a serial number that is always the same.
struct OggPages {
  private var pending: [UInt8] = []

  /// Adds bytes of the stream. Returns the pages that have become complete.
  mutating func append(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
    unsafe pending.append(contentsOf: bytes)
    var done = 0
    while let length = Self.length(pending[done...]) {
      Self.renumber(&pending, done..<done + length)
      done += length
    }
    defer { pending.removeFirst(done) }
    return Array(pending[..<done])
  }

  /// Returns the length of the page at the beginning; nil if it isn't complete.
  private static func length(_ bytes: ArraySlice<UInt8>) -> Int? {
    let start = bytes.startIndex
    guard bytes.count >= 27, bytes.count >= 27 + Int(bytes[start + 26]) else { return nil }
    let segments = bytes[(start + 27)...].prefix(Int(bytes[start + 26]))
    let length = segments.reduce(27 + segments.count) { $0 + Int($1) }
    return bytes.count >= length ? length : nil
  }

  private static func renumber(_ bytes: inout [UInt8], _ page: Range<Int>) {
    let start = page.lowerBound
    for (index, byte) in [1, 0, 0, 0].enumerated() { bytes[start + 14 + index] = UInt8(byte) }
    for index in 22..<26 { bytes[start + index] = 0 }
    let crc = bytes[page].reduce(UInt32(0)) { $0 << 8 ^ table[Int($0 >> 24 ^ UInt32($1))] }
    for index in 0..<4 { bytes[start + 22 + index] = UInt8(truncatingIfNeeded: crc >> (8 * UInt32(index))) }
  }

  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte) << 24) { value, _ in value << 1 ^ (value >> 31) * 0x04C1_1DB7 }
  }
}
