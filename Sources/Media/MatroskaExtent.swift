// Where a Matroska file should end (RFC 8794 §4 to 6, RFC 9559 §4.5), which no tool reports.
//
//   file     an EBML header, then one Segment
//   element  identifier, size, content. Both begin with a byte whose leading zeros count the further bytes; the
//            identifier keeps the bit after these, the size does not. A size of all ones is unknown.
//
// Recorders that write as they go, like a browser's, leave the sizes of Segment and Clusters unknown and give no
// length. The elements inside have known sizes, which show whether the last one is complete.

/// Whether a Matroska file is complete, according to its sizes alone.
enum MatroskaExtent: Equatable {
  case whole
  /// The file ends within an element.
  case cut
  /// The file isn't Matroska, or has too many elements to check.
  case unknown

  private static let segment: UInt64 = 0x1853_8067
  private static let cluster: UInt64 = 0x1F43_B675
  /// Enough for hours of small blocks; takes about a second.
  private static let elementLimit = 1 << 20

  /// Checks the file at `path`. Needs one read of a few bytes per element checked: two elements if the sizes are known.
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
