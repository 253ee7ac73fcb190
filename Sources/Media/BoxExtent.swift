// Where an MP4 or QuickTime file should end (ISO 14496-12 §4.2): boxes follow one another, each a size of 32 bits that
// counts itself, and four letters; a size of 1 is followed by one of 64 bits, one of 0 reaches to the end of the file.

// A file with a "moof" is fragmented: written as it was recorded, with a header from before its length was known.

/// Whether an MP4 file is all there, by the sizes of its outermost boxes.
struct BoxExtent: Equatable {
  enum Verdict {
    case whole
    /// It ends within a box of sound or pictures, or of what tells of them.
    case cut
    /// Something else follows its boxes, as some cameras write, or there are too many to look at.
    case unknown
  }

  private(set) var verdict = Verdict.unknown
  /// Whether the header's length is no more than a guess.
  private(set) var isFragmented = false

  /// Those of a fragmented recording of a day, two a second.
  private static let boxLimit = 1 << 18
  private static let needed = ["mdat", "moov", "moof"].map { Array($0.utf8) }

  /// Of the file at `path`. A read of a few bytes for each box.
  init(path: String) {
    if let file = FileStart(path: path) { verdict = walk(file) }
  }

  private mutating func walk(_ file: FileStart) -> Verdict {
    let length = file.length
    var offset = 0
    for _ in 0..<Self.boxLimit {
      guard offset < length else { return .whole }
      let head = file.bytes(at: offset, count: 16)
      guard head.count >= 8 else { return .cut }
      var size = Self.number(head[..<4])
      if head[4..<8].elementsEqual("moof".utf8) { isFragmented = true }
      if size == 0 { return .whole }
      if size == 1 {
        guard head.count == 16 else { return .cut }
        size = Self.number(head[8...])
      }
      guard size >= 8 else { return .unknown }
      guard size <= UInt64(length - offset) else { return Self.needed.contains(Array(head[4..<8])) ? .cut : .unknown }
      offset += Int(size)
    }
    return .unknown
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}
