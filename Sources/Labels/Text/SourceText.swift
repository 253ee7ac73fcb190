// How bytes become text:
//
//   EF BB BF …         UTF-8; the mark is skipped
//   FE FF … / FF FE …  UTF-16, big-endian or little-endian
//   a `charset`        the encoding that the client names, if it is one of `TextEncoding`
//   valid UTF-8        UTF-8
//   NULs               UTF-16 without a mark, if most are at even, or most at odd places
//   anything else      the encoding that `EncodingGuess` finds
//
// A NUL is in no text but WebVTT, where it stands for U+FFFD; it shows that the file is binary.

/// A file as UTF-8 without a byte order mark.
struct SourceText: Sendable {
  let bytes: [UInt8]
  /// The name of the file's encoding.
  let encoding: String

  init(_ file: [UInt8], charset: String? = nil) throws(LabelsError) {
    let (text, encoding) = Self.utf8(file, charset)
    self.encoding = encoding
    guard let offset = text.firstIndex(of: 0) else {
      bytes = text
      return
    }
    guard WebVTT.isHeader(text.prefix { !ASCII.isBlankOrLineEnd($0) }) else {
      throw LabelsError(.notText, at: offset, in: text)
    }
    bytes = Array(text.split(separator: 0, omittingEmptySubsequences: false).joined(separator: "\u{FFFD}".utf8))
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

  private static func utf8(_ file: [UInt8], _ charset: String?) -> (text: [UInt8], encoding: String) {
    for (mark, isBigEndian) in [([0xFE, 0xFF] as [UInt8], true), ([0xFF, 0xFE], false)] where file.starts(with: mark) {
      return utf16(file.dropFirst(2), isBigEndian: isBigEndian)
    }
    let start = file.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    if start == 0, let named = charset.flatMap({ TextEncoding(label: $0) }), let text = named.decoded(file[...]) {
      return (text, named.name)
    }
    let nuls = (even: nulCount(file, from: 0), odd: nulCount(file, from: 1))
    if max(nuls.even, nuls.odd) > file.count / 4 { return utf16(file[...], isBigEndian: nuls.even > nuls.odd) }
    if isUTF8(file) { return (start == 0 ? file : Array(file[start...]), "UTF-8") }
    let found = EncodingGuess(file).encoding
    return (found.decoded(file[start...]) ?? utf8(windows1252: file[start...]), found.name)
  }

  /// Whether a file is UTF-8, or JSON whose strings are pieces of UTF-8: whisper.cpp cuts characters into tokens.
  private static func isUTF8(_ file: [UInt8]) -> Bool {
    guard (try? UTF8Span(validating: file.span)) == nil else { return true }
    guard file.first(where: { !ASCII.isBlankOrLineEnd($0) }) == ASCII.openBrace else { return false }
    let high = file.filter { $0 >= 0x80 }
    return (try? UTF8Span(validating: high.span)) != nil
  }

  /// Returns how many of every other byte are NUL.
  private static func nulCount(_ file: [UInt8], from start: Int) -> Int {
    stride(from: start, to: file.count, by: 2).reduce(0) { $0 + (file[$1] == 0 ? 1 : 0) }
  }

  private static func utf16(_ text: ArraySlice<UInt8>, isBigEndian: Bool) -> (text: [UInt8], encoding: String) {
    (utf8(utf16: text, isBigEndian: isBigEndian), isBigEndian ? "UTF-16BE" : "UTF-16LE")
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
  private let bytes: ArraySlice<UInt8>
  private(set) var position: Int
  /// The number of lines returned so far.
  private(set) var number = 0

  init(_ source: SourceText) { self.init(source.bytes[...]) }

  init(_ bytes: ArraySlice<UInt8>) { (self.bytes, position) = (bytes, bytes.startIndex) }

  /// Returns where the next line is, without its end.
  mutating func next() -> Range<Int>? {
    guard position < bytes.endIndex else { return nil }
    let start = position
    while position < bytes.endIndex, bytes[position] != ASCII.lineFeed, bytes[position] != ASCII.carriageReturn {
      position += 1
    }
    let end = position
    if position < bytes.endIndex {
      let isPair = bytes[position] == ASCII.carriageReturn && position + 1 < bytes.endIndex
      position += isPair && bytes[position + 1] == ASCII.lineFeed ? 2 : 1
    }
    number += 1
    return start..<end
  }
}
