// Where a Matroska file should end, which no tool tells (RFC 8794 §4 to 6, RFC 9559 §4.5).
//
//   file     an EBML header, then one Segment
//   element  identifier, size, content. Both begin with a byte whose leading zeros tell how many more follow; the
//            identifier keeps the bit after these, the size does not. A size of ones alone is not known.
//
// Recorders that write as they go, as a browser's, leave the sizes of Segment and Clusters open, and tell no length;
// then the elements in them, whose sizes are known, show whether the last one is whole.

/// Whether a Matroska file is all there, by its sizes alone.
enum MatroskaExtent: Equatable {
  case whole
  /// It ends within an element.
  case cut
  /// Something else than Matroska, or too many elements to look at.
  case unknown

  private static let segment: UInt64 = 0x1853_8067
  private static let cluster: UInt64 = 0x1F43_B675
  /// Hours of small blocks, in a second.
  private static let elementLimit = 1 << 20

  /// Of the file at `path`. A read of a few bytes for each element that is looked at: two, where sizes are told.
  init(path: String) {
    self = FileStart(path: path).map { Self.walk($0) } ?? .unknown
  }

  private static func walk(_ file: FileStart) -> MatroskaExtent {
    let length = file.length
    var offset = 0
    for _ in 0..<elementLimit {
      guard offset < length else { return .whole }
      let head = file.bytes(at: offset, count: 12)
      guard let first = head.first, first >= 0x10 else { return .unknown }
      guard let identifier = number(head[...], keepsMark: true),
        let size = number(head.dropFirst(identifier.bytes), keepsMark: false)
      else { return head.count < 12 ? .cut : .unknown }
      offset += identifier.bytes + size.bytes
      if size.value == (1 << UInt64(7 * size.bytes)) - 1 {
        guard [segment, cluster].contains(identifier.value) else { return .unknown }
      } else {
        guard size.value <= UInt64(length - min(offset, length)) else { return .cut }
        offset += Int(size.value)
      }
    }
    return .unknown
  }

  private static func number(_ bytes: ArraySlice<UInt8>, keepsMark: Bool) -> (value: UInt64, bytes: Int)? {
    guard let first = bytes.first, first > 0 else { return nil }
    let count = first.leadingZeroBitCount + 1
    guard bytes.count >= count else { return nil }
    let value = bytes.prefix(count).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return (keepsMark ? value : value & ((1 << UInt64(7 * count)) - 1), count)
  }
}
