// A box of an MP4 file is a 32-bit size that includes itself, a type of four letters, and its content (ISO 14496-12
// §4.2). A size of 1 is followed by a 64-bit size. "Full" boxes begin with a version of 8 bits and 24 flags; in version
// 1, times have 64 bits, not 32. All numbers are big-endian.

/// A box of an MP4 file.
struct Box {
  fileprivate let file: FileStart
  /// Its type, in Latin-1.
  let type: String
  private let content: Range<Int>

  fileprivate init(_ file: FileStart, _ type: String, _ content: Range<Int>) {
    (self.file, self.type, self.content) = (file, type, content)
  }

  /// Length of the content, in bytes.
  var length: Int { content.count }

  /// Whether this is a full box of version 1.
  var hasLongTimes: Bool { number(at: 0, 1) == 1 }

  /// Returns bytes of the content from an offset on, at most this many.
  func bytes(_ count: Int, from offset: Int = 0) -> [UInt8] {
    guard offset <= length else { return [] }
    return file.bytes(at: content.lowerBound + offset, count: min(count, length - offset))
  }

  /// Returns the number of `count` bytes (1 to 8) at an offset in the content, or 0 if it has no such bytes.
  func number(at offset: Int, _ count: Int) -> Int {
    guard offset + count <= length else { return 0 }
    let bytes = file.bytes(at: content.lowerBound + offset, count: count)
    return bytes.count == count ? Int(clamping: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) : 0
  }

  /// Returns the boxes in the content from an offset on; nil as `BoxList` does.
  func boxes(_ types: Set<String>?, from offset: Int = 0) -> BoxList? {
    guard offset <= length else { return nil }
    return BoxList(file, content.lowerBound + offset..<content.upperBound, types)
  }
}

/// A sequence of boxes.
struct BoxList {
  private(set) var all: [Box] = []

  /// Maximum number of boxes.
  private static let limit = 1024

  /// Reads the boxes that fill `range` of a file. Fails if they don't, if there are too many, or if one's type isn't
  /// among `types`, unless that is nil. A type occurs once, unless "*" follows it in `types`.
  init?(_ file: FileStart, _ range: Range<Int>, _ types: Set<String>?) {
    var place = range.lowerBound
    while place < range.upperBound {
      let head = file.bytes(at: place, count: min(16, range.upperBound - place))
      guard head.count >= 8, all.count < Self.limit else { return nil }
      var (size, headSize) = (Self.number(head[..<4]), 8)
      if size == 1, head.count == 16 { (size, headSize) = (Self.number(head[8...]), 16) }
      guard size >= headSize, size <= range.upperBound - place else { return nil }
      let type = String(String.UnicodeScalarView(head[4..<8].map { UnicodeScalar($0) }))
      if let types, !types.contains(type + "*") {
        guard types.contains(type), self[type] == nil else { return nil }
      }
      all.append(Box(file, type, place + headSize..<place + size))
      place += size
    }
  }

  /// Whether the first boxes are of these types; "free" doesn't count.
  func begins(with types: [String]) -> Bool { all.lazy.map(\.type).filter { $0 != "free" }.starts(with: types) }

  /// The first box of a type.
  subscript(type: String) -> Box? { all.first { $0.type == type } }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
    Int(clamping: bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }
}
