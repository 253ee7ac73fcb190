// Pulls values out of JSON (RFC 8259) without building a tree: a file of 16 MB may have millions of numbers. Names
// that a caller doesn't want are skipped, but checked.

/// A position in a JSON text.
struct JSONScanner {
  let source: SourceText
  private(set) var position = 0
  private var depth = 0

  init(_ source: SourceText) { self.source = source }

  private var next: UInt8? { position < source.bytes.count ? source.bytes[position] : nil }

  /// Whether the next value is an object.
  var isObject: Bool { source.bytes[position...].first { !ASCII.isBlankOrLineEnd($0) } == ASCII.openBrace }
  /// Whether the next value is a string.
  var isString: Bool { source.bytes[position...].first { !ASCII.isBlankOrLineEnd($0) } == ASCII.quote }

  func error(_ fault: LabelsFault) -> LabelsError { source.error(fault, at: position) }

  /// Throws unless only blanks are left.
  mutating func end() throws(LabelsError) {
    skipBlanks()
    guard next == nil else { throw error(.malformedJSON) }
  }

  /// Enters an object and calls `body` for each of its names, which must read or skip the value.
  mutating func object(_ body: (inout JSONScanner, _ name: String) throws(LabelsError) -> Void) throws(LabelsError) {
    try enter("{", "an object")
    var isFirst = true
    while try hasNext(&isFirst, until: ASCII.closeBrace) {
      guard next == ASCII.quote else { throw error(.malformedJSON) }
      let name = Self.name(try string())
      skipBlanks()
      try take(ASCII.colon)
      try body(&self, name)
    }
  }

  /// Returns a member's name, or the beginning of one that is longer than any known: comparing a long name may take
  /// time that grows with the square of its length.
  private static func name(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.count <= 64 ? String(decoding: bytes, as: UTF8.self) : String(decoding: bytes.prefix(64), as: UTF8.self) + "…"
  }

  /// Enters an array and calls `body` for each of its values, which it must read or skip.
  mutating func array(_ body: (inout JSONScanner) throws(LabelsError) -> Void) throws(LabelsError) {
    try enter("[", "an array")
    var isFirst = true
    while try hasNext(&isFirst, until: ASCII.closeBracket) { try body(&self) }
  }

  private mutating func enter(_ bracket: Unicode.Scalar, _ expected: String) throws(LabelsError) {
    skipBlanks()
    guard next == UInt8(ascii: bracket) else { throw error(.wrongType(expected: expected)) }
    depth += 1
    guard depth <= LabelLimits.depth else { throw error(.jsonTooDeep(limit: LabelLimits.depth)) }
    position += 1
  }

  /// Moves to the next member or element; returns false behind the last.
  private mutating func hasNext(_ isFirst: inout Bool, until close: UInt8) throws(LabelsError) -> Bool {
    skipBlanks()
    if next == close {
      position += 1
      depth -= 1
      return false
    }
    if !isFirst {
      try take(ASCII.comma)
      skipBlanks()
      guard next != close else { throw error(.malformedJSON) }
    }
    isFirst = false
    return true
  }

  /// Moves to a value's first byte, where its faults are reported.
  mutating func skipBlanks() {
    while let byte = next, ASCII.isBlankOrLineEnd(byte) { position += 1 }
  }

  private mutating func take(_ byte: UInt8) throws(LabelsError) {
    guard next == byte else { throw error(.malformedJSON) }
    position += 1
  }

  /// Skips a value of any type.
  mutating func skip() throws(LabelsError) {
    skipBlanks()
    switch next {
    case ASCII.openBrace: try object { (scanner, _) throws(LabelsError) in try scanner.skip() }
    case ASCII.openBracket: try array { (scanner) throws(LabelsError) in try scanner.skip() }
    case ASCII.quote: _ = try string()
    case UInt8(ascii: "t"): try take(word: "true")
    case UInt8(ascii: "f"): try take(word: "false")
    default: if !skipNull() { _ = try numberRange() }
    }
  }

  /// Skips a `null`, or a number that Python writes although JSON has none such; returns false if the value is another.
  mutating func skipNull() -> Bool {
    skipBlanks()
    guard let byte = next, "nNI-".utf8.contains(byte) else { return false }
    return ["null", "NaN", "Infinity", "-Infinity"].contains { skip(word: $0) }
  }

  private mutating func skip(word: String) -> Bool {
    guard source.bytes[position...].starts(with: word.utf8) else { return false }
    position += word.utf8.count
    return true
  }

  private mutating func take(word: String) throws(LabelsError) {
    guard skip(word: word) else { throw error(.malformedJSON) }
  }

  /// Reads a number of seconds.
  mutating func time() throws(LabelsError) -> MediaTime {
    skipBlanks()
    let start = position
    guard let first = next, ASCII.isDigit(first) || first == ASCII.minus else {
      let isValue = next.map { "\"[{tfnNI".utf8.contains($0) } ?? false
      throw error(isValue ? .wrongType(expected: "a number of seconds") : .malformedJSON)
    }
    let range = try numberRange()
    do throws(LabelsFault) { return try TimeParser(bytes: source.bytes).seconds(range) } catch {
      throw source.error(error, at: start)
    }
  }

  /// Scans a number and returns where it is.
  private mutating func numberRange() throws(LabelsError) -> Range<Int> {
    let start = position
    if next == ASCII.minus { position += 1 }
    let whole = position
    try digits()
    guard source.bytes[whole] != 0x30 || position == whole + 1 else { throw source.error(.malformedJSON, at: whole) }
    if next == ASCII.dot {
      position += 1
      try digits()
    }
    if let byte = next, byte | 0x20 == UInt8(ascii: "e") {
      position += 1
      if next == ASCII.plus || next == ASCII.minus { position += 1 }
      try digits()
    }
    return start..<position
  }

  private mutating func digits() throws(LabelsError) {
    let start = position
    while let byte = next, ASCII.isDigit(byte) { position += 1 }
    guard position > start else { throw error(.malformedJSON) }
  }

  /// Reads a string as a text of one or more lines, in its normal form.
  mutating func normalText() throws(LabelsError) -> String { Labels.normalText(try string()) }

  /// Reads a string as a text of one line, in its normal form.
  mutating func normalLine() throws(LabelsError) -> String { Labels.normalLine(try string()) }

  /// Reads a string as a text of one line; nil for `null` and for an empty one.
  mutating func optionalLine() throws(LabelsError) -> String? {
    guard !skipNull() else { return nil }
    let line = try normalLine()
    return line.isEmpty ? nil : line
  }

  /// Reads a number that isn't negative, to a millionth.
  mutating func number() throws(LabelsError) -> Double { try time().seconds }

  /// Reads a whole number of milliseconds.
  mutating func milliseconds() throws(LabelsError) -> MediaTime {
    MediaTime(clamping: try time().microseconds / 1000)
  }

  /// Reads `true` or `false`.
  mutating func flag() throws(LabelsError) -> Bool {
    skipBlanks()
    if skip(word: "true") { return true }
    guard skip(word: "false") else { throw error(.wrongType(expected: "true or false")) }
    return false
  }

  /// Reads the bytes of a string.
  mutating func string() throws(LabelsError) -> ArraySlice<UInt8> {
    skipBlanks()
    guard next == ASCII.quote else { throw error(.wrongType(expected: "a string")) }
    position += 1
    let start = position
    while let byte = next, byte >= 0x20, byte != ASCII.quote, byte != ASCII.backslash { position += 1 }
    if next == ASCII.quote {
      position += 1
      return source.bytes[start..<position - 1]
    }
    var bytes = Array(source.bytes[start..<position])
    while let byte = next, byte >= 0x20 {
      position += 1
      switch byte {
      case ASCII.quote: return bytes[...]
      case ASCII.backslash: try escape(&bytes)
      default: bytes.append(byte)
      }
    }
    throw error(.malformedJSON)
  }

  private mutating func escape(_ bytes: inout [UInt8]) throws(LabelsError) {
    guard let byte = next else { throw error(.malformedJSON) }
    position += 1
    switch byte {
    case ASCII.quote, ASCII.backslash, ASCII.slash: bytes.append(byte)
    case UInt8(ascii: "b"): bytes.append(0x08)
    case UInt8(ascii: "f"): bytes.append(0x0C)
    case UInt8(ascii: "n"): bytes.append(0x0A)
    case UInt8(ascii: "r"): bytes.append(0x0D)
    case UInt8(ascii: "t"): bytes.append(0x09)
    case UInt8(ascii: "u"):
      var units = [try codeUnit()]
      if UTF16.isLeadSurrogate(units[0]) {
        try take(ASCII.backslash)
        try take(UInt8(ascii: "u"))
        units.append(try codeUnit())
      }
      guard let text = String(validating: units, as: UTF16.self) else { throw error(.malformedJSON) }
      bytes.append(contentsOf: text.utf8)
    default:
      position -= 1
      throw error(.malformedJSON)
    }
  }

  private mutating func codeUnit() throws(LabelsError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw error(.malformedJSON)
      }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }
}

/// What a JSON text contains.
enum JSONKind {
  private static let read: [(member: String, format: LabelFormat)] = [
    ("labels", .json), ("segments", .whisper), ("transcription", .whisper), ("chapters", .chapters),
    ("words", .whisper), ("word_segments", .whisper),
  ]
  private static let unread = [
    "chunks": "the JSON of Hugging Face's transformers", "jobName": "the JSON of Amazon Transcribe",
    "monologues": "the JSON of Rev", "results": "the JSON of a speech recognition service",
    "utterances": "the JSON of AssemblyAI", "wireMagic": "the JSON of YouTube",
  ]

  /// Returns the format to which one of the outer members belongs.
  static func identify(_ source: SourceText) throws(LabelsError) -> LabelFormat {
    var scanner = JSONScanner(source)
    var (known, unread) = (read.count, nil as String?)
    try scanner.object { (scanner, name) throws(LabelsError) in
      scanner.skipBlanks()
      // OpenAI writes `null` for what wasn't asked for.
      if !scanner.skipNull() {
        known = min(known, read.firstIndex { $0.member == name } ?? known)
        unread = Self.unread[name] ?? unread
        try scanner.skip()
      }
    }
    guard known == read.count else { return read[known].format }
    throw source.error(unread.map { .unreadFormat($0) } ?? .unknownFormat, at: 0)
  }
}

extension WrittenLabels {
  /// Writes a JSON string.
  mutating func write(json text: String) {
    write(ASCII.quote)
    for byte in text.utf8 {
      switch byte {
      case ASCII.quote: write("\\\"")
      case ASCII.backslash: write("\\\\")
      case ASCII.lineFeed: write("\\n")
      case ASCII.tab: write("\\t")
      default: write(byte)
      }
    }
    write(ASCII.quote)
  }
}
