// Where an MP4 or QuickTime file should end (ISO 14496-12 §4.2). It is a sequence of boxes, each with a 32-bit size
// that includes itself and a type of four letters; a size of 1 is followed by a 64-bit size, and a size of 0 means up
// to the end of the file.

// A file with a "moof" is fragmented: it was written during the recording, and its header before the length was known.

/// Whether an MP4 file is complete, according to the sizes of its top-level boxes.
struct BoxExtent: Equatable {
  enum Verdict {
    case whole
    /// The file ends within a box of media data or its description.
    case cut
    /// Other data follows the boxes, as some cameras write, or there are too many boxes to check.
    case unknown
  }

  private(set) var verdict = Verdict.unknown
  /// Whether the length in the header is only an estimate.
  private(set) var isFragmented = false

  /// Enough for a day of fragmented recording with two boxes per second.
  private static let boxLimit = 1 << 18
  private static let needed = ["mdat", "moov", "moof"].map { Array($0.utf8) }

  /// Checks the file at `path`. Needs one read of a few bytes per box.
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
