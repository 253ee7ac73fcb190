// How bytes become text:
//
//   EF BB BF …         UTF-8; the mark is skipped
//   FE FF … / FF FE …  UTF-16, big-endian or little-endian
//   valid UTF-8        UTF-8
//   anything else      Windows-1252, which is Latin-1 with printable characters from 80 to 9F, as browsers read
//                      Latin-1 (https://encoding.spec.whatwg.org/#names-and-labels)
//
// A NUL is in no text; it shows that the file is binary, or UTF-16 without a mark.

/// A file as UTF-8 without a byte order mark.
struct SourceText: Sendable {
  let bytes: [UInt8]

  init(_ file: [UInt8]) throws(LabelsError) {
    bytes = Self.utf8(file)
    if let offset = bytes.firstIndex(of: 0) { throw error(.notText, at: offset) }
  }

  func error(_ fault: LabelsFault, at offset: Int) -> LabelsError {
    LabelsError(fault, at: offset, in: bytes)
  }

  /// Returns the range without blanks at its ends.
  func trimmed(_ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, ASCII.isBlank(bytes[start]) { start += 1 }
    while end > start, ASCII.isBlank(bytes[end - 1]) { end -= 1 }
    return start..<end
  }

  private static func utf8(_ file: [UInt8]) -> [UInt8] {
    switch (file.first, file.dropFirst().first) {
    case (0xFE, 0xFF): return utf8(utf16: file.dropFirst(2), isBigEndian: true)
    case (0xFF, 0xFE): return utf8(utf16: file.dropFirst(2), isBigEndian: false)
    default: break
    }
    let start = file.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    if (try? UTF8Span(validating: file.span)) != nil { return start == 0 ? file : Array(file[start...]) }
    return utf8(windows1252: file[start...])
  }

  static func utf8(windows1252 text: ArraySlice<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 9 / 8)
    for byte in text {
      if byte < 0x80 { bytes.append(byte) } else { bytes.append(contentsOf: String(windows1252(byte)).utf8) }
    }
    return bytes
  }

  /// Unpaired surrogates become U+FFFD, and so does half a unit at the end.
  static func utf8(utf16 text: ArraySlice<UInt8>, isBigEndian: Bool) -> [UInt8] {
    let units = stride(from: text.startIndex, to: text.endIndex, by: 2).lazy.map { position -> UInt16 in
      guard position + 1 < text.endIndex else { return 0xFFFD }
      let (first, second) = (UInt16(text[position]), UInt16(text[position + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    _ = transcode(units.makeIterator(), from: UTF16.self, to: UTF8.self, stoppingOnError: false) { bytes.append($0) }
    return bytes
  }

  private static func windows1252(_ byte: UInt8) -> Unicode.Scalar {
    guard (0x80...0x9F).contains(byte) else { return Unicode.Scalar(byte) }
    return Array("€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8D}Ž\u{8F}\u{90}‘’“”•–—˜™š›œ\u{9D}žŸ".unicodeScalars)[Int(byte) - 0x80]
  }
}

/// The lines of a text, which end with LF, CR LF, CR, or the text.
struct TextLines {
  private let bytes: [UInt8]
  private(set) var position = 0
  /// The number of lines returned so far.
  private(set) var number = 0

  init(_ source: SourceText) { bytes = source.bytes }

  /// Returns where the next line is, without its end.
  mutating func next() -> Range<Int>? {
    guard position < bytes.count else { return nil }
    let start = position
    while position < bytes.count, bytes[position] != ASCII.lineFeed, bytes[position] != ASCII.carriageReturn {
      position += 1
    }
    let end = position
    if position < bytes.count {
      let isPair = bytes[position] == ASCII.carriageReturn && position + 1 < bytes.count
      position += isPair && bytes[position + 1] == ASCII.lineFeed ? 2 : 1
    }
    number += 1
    return start..<end
  }
}
