/// The text of a cue of WebVTT or SubRip, whose tags are removed.
struct CueText {
  enum Dialect {
    /// Every tag is removed and entities are decoded.
    case vtt
    /// Only the tags that players know are removed, because nothing can be escaped: `<b>`, `<i>`, `<u>`, `<s>`,
    /// `<font …>` and `{\an8}`; `<br>` is a line break.
    case srt
    /// As SubRip, and `[br]` is a line break.
    case sbv
  }

  /// What one speaker says.
  struct Voice {
    var speaker: String?
    var text = InlineTimes()
  }

  private let source: SourceText
  private var position: Int
  private let end: Int
  private let dialect: Dialect
  private var depth = 0
  /// The next “>” and “}” at or behind the last position that was searched from, or the end. Kept, because a text may
  /// have millions of brackets that nothing closes.
  private var nextClose: (angle: Int, brace: Int) = (-1, -1)
  private var finished: [Voice] = []
  private var voice = Voice()

  private static let tagsOfSRT: Set<String> = ["b", "i", "u", "s", "font"]

  init(_ source: SourceText, _ range: Range<Int>, _ dialect: Dialect) {
    (self.source, position, end, self.dialect) = (source, range.lowerBound, range.upperBound, dialect)
  }

  /// Parses the text. Returns one voice, or one for each that a cue names.
  mutating func voices() throws(LabelsError) -> [Voice] {
    while position < end {
      switch source.bytes[position] {
      case ASCII.less: try tag()
      case ASCII.openBrace where dialect != .vtt: override()
      case ASCII.openBracket where dialect == .sbv: lineBreak()
      case ASCII.ampersand where dialect == .vtt: entity()
      default: take()
      }
    }
    if finished.isEmpty || !voice.text.isBlank { finished.append(voice) }
    return finished
  }

  private mutating func take() {
    voice.text.append(source.bytes[position])
    position += 1
  }

  /// Handles a tag, or takes a “<” that begins none.
  private mutating func tag() throws(LabelsError) {
    let start = position + 1
    if nextClose.angle < start { nextClose.angle = source.bytes[start..<end].firstIndex(of: ASCII.greater) ?? end }
    let close = nextClose.angle
    guard close < end, isTag(start..<close) else { return take() }
    let isClosing = source.bytes[start] == ASCII.slash
    let name = tagName(start..<close)
    if dialect != .vtt, name == "br" {
      voice.text.append(ASCII.lineFeed)
    } else if ASCII.isDigit(source.bytes[start]) {
      do throws(LabelsFault) {
        voice.text.mark(try TimeParser(bytes: source.bytes).clock(start..<close), at: start)
      } catch {
        throw source.error(error, at: start)
      }
    } else if isClosing {
      depth = max(0, depth - 1)
    } else {
      depth += 1
      guard depth <= LabelLimits.depth else {
        throw source.error(.tagsTooDeep(limit: LabelLimits.depth), at: position)
      }
      if dialect == .vtt, name == "v" { begin(speaker(start..<close)) }
    }
    position = close + 1
  }

  private func isTag(_ range: Range<Int>) -> Bool {
    guard let first = source.bytes[range].first else { return dialect == .vtt }
    if dialect != .vtt { return name(isKnown: tagName(range)) }
    if ASCII.isDigit(first) {
      return source.bytes[range].allSatisfy { ASCII.isDigit($0) || ":.,".utf8.contains($0) }
    }
    return ASCII.isLetter(first) || first == ASCII.slash || first == ASCII.dot
  }

  private func name(isKnown name: String) -> Bool { Self.tagsOfSRT.contains(name) || name == "br" }

  /// Returns the name of a tag in lower case, without its slash, classes and attributes.
  private func tagName(_ range: Range<Int>) -> String {
    var bytes = source.bytes[range]
    if bytes.first == ASCII.slash { bytes = bytes.dropFirst() }
    return String(decoding: bytes.prefix(8).prefix(while: ASCII.isLetter), as: UTF8.self).lowercased()
  }

  /// Returns what follows the name and classes of a `<v>`; nil if nothing does.
  private func speaker(_ range: Range<Int>) -> String? {
    guard let blank = source.bytes[range].firstIndex(where: ASCII.isBlankOrLineEnd) else { return nil }
    var name = CueText(source, blank..<range.upperBound, .vtt)
    while name.position < name.end {
      if source.bytes[name.position] == ASCII.ampersand { name.entity() } else { name.take() }
    }
    let text = normalLine(name.voice.text.bytes[...])
    return text.isEmpty ? nil : text
  }

  private mutating func begin(_ speaker: String?) {
    if !voice.text.isBlank {
      finished.append(voice)
      voice = Voice()
    }
    voice.speaker = speaker
  }

  /// Takes `[br]` as a line break, or a bracket that begins none.
  private mutating func lineBreak() {
    guard source.bytes[position..<end].starts(with: "[br]".utf8) else { return take() }
    voice.text.append(ASCII.lineFeed)
    position += 4
  }

  /// Skips `{\…}`, or takes a brace that begins none.
  private mutating func override() {
    guard position + 1 < end, source.bytes[position + 1] == ASCII.backslash else { return take() }
    if nextClose.brace < position {
      nextClose.brace = source.bytes[position..<end].firstIndex(of: ASCII.closeBrace) ?? end
    }
    guard nextClose.brace < end else { return take() }
    position = nextClose.brace + 1
  }

  /// Decodes an entity, or takes an ampersand that begins none.
  private mutating func entity() {
    for (name, text) in Self.entities where source.bytes[position..<end].starts(with: name.utf8) {
      voice.text.append(text.utf8)
      position += name.utf8.count
      return
    }
    take()
  }

  private static let entities = [
    ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", "\u{A0}"), ("&lrm;", "\u{200E}"), ("&rlm;", "\u{200F}"),
    ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"),
  ]
}
