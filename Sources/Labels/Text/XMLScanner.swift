// Pulls elements out of XML 1.0 without building a tree. There is no document type, so there are no entities but the
// five predefined ones and numbers; another ampersand stands for itself. Names lose their prefixes. Comments and
// processing instructions are skipped.

/// A position in an XML text.
struct XMLScanner {
  struct Element {
    let name: String
    /// Values by names; of equal names, the first.
    let attributes: [String: [UInt8]]
    let offset: Int

    func text(_ name: String) -> String? {
      guard let value = attributes[name].map({ normalLine($0[...]) }), !value.isEmpty else { return nil }
      return value
    }
  }

  enum Event {
    /// An element begins; its end follows, also if it is empty.
    case begin(Element)
    case end
    case text([UInt8])
  }

  let source: SourceText
  private(set) var position = 0
  private var open: [ArraySlice<UInt8>] = []
  /// Whether the last element is empty, so that its end comes next.
  private var isEmptyElement = false
  /// The next semicolon at or behind the last ampersand, or the end: a text may have millions of ampersands.
  private var nextSemicolon = -1

  private static let attributeLimit = 64

  init(_ source: SourceText) { self.source = source }

  private func error(_ fault: LabelsFault) -> LabelsError { source.error(fault, at: position) }

  /// Returns the next event; nil at the end of the outermost element.
  mutating func next() throws(LabelsError) -> Event? {
    if isEmptyElement {
      isEmptyElement = false
      open.removeLast()
      return .end
    }
    var text: [UInt8] = []
    while position < source.bytes.count {
      guard source.bytes[position] == ASCII.less else {
        text += try characters(until: ASCII.less)
        continue
      }
      if starts("<!--") {
        try skip(past: "-->")
      } else if starts("<![CDATA[") {
        let start = position + 9
        try skip(past: "]]>")
        text += source.bytes[start..<position - 3]
      } else if starts("<?") {
        try skip(past: "?>")
      } else if starts("<!") {
        throw error(.xmlHasDocumentType)
      } else if !text.isEmpty, !open.isEmpty {
        break
      } else {
        return try tag()
      }
    }
    if !open.isEmpty, !text.isEmpty, position < source.bytes.count { return .text(text) }
    guard open.isEmpty, text.allSatisfy(ASCII.isBlankOrLineEnd) else { throw error(.malformedXML) }
    return nil
  }

  /// Skips the rest of the element that has begun.
  mutating func skip() throws(LabelsError) {
    let depth = open.count
    while open.count >= depth, let event = try next() {
      if case .end = event, open.count < depth { return }
    }
  }

  private mutating func tag() throws(LabelsError) -> Event {
    let offset = position
    position += 1
    let isEnd = position < source.bytes.count && source.bytes[position] == ASCII.slash
    if isEnd { position += 1 }
    let name = try name()
    if isEnd {
      skipBlanks()
      guard open.popLast() == name else { throw source.error(.malformedXML, at: offset) }
      try take(ASCII.greater)
      return .end
    }
    var attributes: [String: [UInt8]] = [:]
    while true {
      skipBlanks()
      guard position < source.bytes.count, source.bytes[position] != ASCII.greater,
        source.bytes[position] != ASCII.slash
      else { break }
      let key = Self.local(try self.name())
      skipBlanks()
      try take(UInt8(ascii: "="))
      skipBlanks()
      guard position < source.bytes.count, "\"'".utf8.contains(source.bytes[position]),
        attributes.count < Self.attributeLimit
      else { throw error(.malformedXML) }
      let quote = source.bytes[position]
      position += 1
      let value = try characters(until: quote)
      try take(quote)
      if attributes[key] == nil { attributes[key] = value }
    }
    isEmptyElement = position < source.bytes.count && source.bytes[position] == ASCII.slash
    if isEmptyElement { position += 1 }
    try take(ASCII.greater)
    guard open.count < LabelLimits.depth else {
      throw source.error(.xmlTooDeep(limit: LabelLimits.depth), at: offset)
    }
    open.append(name)
    return .begin(Element(name: Self.local(name), attributes: attributes, offset: offset))
  }

  private mutating func name() throws(LabelsError) -> ArraySlice<UInt8> {
    let name = source.bytes[position...].prefix { !ASCII.isBlankOrLineEnd($0) && !"<>/=\"'".utf8.contains($0) }
    guard !name.isEmpty else { throw error(.malformedXML) }
    position = name.endIndex
    return name
  }

  /// Returns a name without its prefix, or the beginning of one that is longer than any known.
  private static func local(_ name: ArraySlice<UInt8>) -> String {
    String(decoding: name.prefix(128).split(separator: ASCII.colon).last?.prefix(64) ?? [], as: UTF8.self)
  }

  /// Takes characters up to a byte, which isn't taken.
  private mutating func characters(until end: UInt8) throws(LabelsError) -> [UInt8] {
    var text: [UInt8] = []
    while position < source.bytes.count, source.bytes[position] != end {
      if source.bytes[position] == ASCII.ampersand, let (character, length) = reference() {
        text += String(character).utf8
        position += length
      } else {
        text.append(source.bytes[position])
        position += 1
      }
    }
    return text
  }

  private static let predefined: [String: Unicode.Scalar] = [
    "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'",
  ]

  /// Returns the character that the ampersand here begins, and its length in bytes.
  private mutating func reference() -> (Unicode.Scalar, length: Int)? {
    if nextSemicolon < position {
      nextSemicolon = source.bytes[position...].firstIndex(of: ASCII.semicolon) ?? source.bytes.count
    }
    guard nextSemicolon < source.bytes.count, nextSemicolon - position <= 12 else { return nil }
    let name = String(decoding: source.bytes[position + 1..<nextSemicolon], as: UTF8.self)
    let length = nextSemicolon + 1 - position
    if let character = Self.predefined[name] { return (character, length) }
    guard name.hasPrefix("#") else { return nil }
    let number = name.hasPrefix("#x") ? UInt32(name.dropFirst(2), radix: 16) : UInt32(name.dropFirst())
    return number.flatMap(Unicode.Scalar.init).map { ($0, length) }
  }

  private func starts(_ text: StaticString) -> Bool { source.bytes[position...].starts(with: "\(text)".utf8) }

  private mutating func skip(past mark: String) throws(LabelsError) {
    let (mark, start) = (Array(mark.utf8), position)
    while position + mark.count <= source.bytes.count {
      if source.bytes[position] == mark[0], source.bytes[position...].starts(with: mark) {
        position += mark.count
        return
      }
      position += 1
    }
    throw source.error(.malformedXML, at: start)
  }

  private mutating func skipBlanks() {
    while position < source.bytes.count, ASCII.isBlankOrLineEnd(source.bytes[position]) { position += 1 }
  }

  private mutating func take(_ byte: UInt8) throws(LabelsError) {
    guard position < source.bytes.count, source.bytes[position] == byte else { throw error(.malformedXML) }
    position += 1
  }
}

/// What an XML text contains.
enum XMLKind {
  private static let unread = [
    "annotation_document": "ELAN's annotations", "rss": "RSS", "sami": "SAMI", "timedtext": "YouTube's timed text",
    "textstream": "GPAC's timed text", "transcript": "YouTube's timed text", "usfsubtitles": "USF",
    "window": "RealText",
    "xmeml": "Final Cut's XML", "fcpxml": "Final Cut's XML", "dcsubtitle": "subtitles of digital cinema",
    "subtitlereel": "subtitles of digital cinema", "html": "HTML",
  ]

  /// Returns the format of the outermost element.
  static func identify(_ source: SourceText) throws(LabelsError) -> LabelFormat {
    var scanner = XMLScanner(source)
    guard case .begin(let root)? = try scanner.next() else { throw source.error(.unknownFormat, at: 0) }
    switch root.name {
    case "tt": return .ttml
    case "chapters": return .podlove
    case "Chapters": throw source.error(.unreadFormat("Matroska's chapters in XML"), at: root.offset)
    default:
      throw source.error(unread[root.name.lowercased()].map { .unreadFormat($0) } ?? .unknownFormat, at: root.offset)
    }
  }
}
