// SubStation Alpha and Advanced SubStation Alpha (http://www.tcax.org/docs/ass-specs.htm):
//
//   [Script Info]
//   Title: …
//   [Events]
//   Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
//   Dialogue: 0,0:00:01.00,0:00:02.50,Default,Ann,0,0,0,,…
//
//   text   "\N", "\n" line breaks, "\h" a blank, "{…}" settings: "\k50", "\K", "\kf" and "\ko" the length of the next
//          syllable in hundredths of a second, "\p1" to "\p0" a drawing, which is left out
//
// Other sections, other lines and comments are left out. Events come in any order.

enum SubStation {
  private static let usualFields = ["start", "end", "style", "name", "text"]

  static func parse(_ source: SourceText) throws(LabelsError) -> LabelFile {
    var (file, lines, labels) = (LabelFile(), TextLines(source), LabelCollector(source))
    var (fields, isInEvents) = (usualFields, false)
    while let range = lines.next() {
      let line = source.trimmed(range)
      if source.bytes[line].first == ASCII.openBracket {
        isInEvents = normalLine(source.bytes[line].prefix(32)).lowercased() == "[events]"
      }
      guard let colon = source.bytes[line].firstIndex(of: ASCII.colon) else { continue }
      let value = source.trimmed(colon + 1..<line.upperBound)
      switch (isInEvents, String(decoding: source.bytes[line.lowerBound..<colon].prefix(16), as: UTF8.self)) {
      case (false, "Title"): file.title = normalLine(source.bytes[value])
      case (true, "Format"):
        fields = source.bytes[value].split(separator: ASCII.comma).prefix(32).map { normalLine($0).lowercased() }
      case (true, "Dialogue"):
        try labels.take(at: line.lowerBound) { () throws(LabelsError) in
          let label = try label(source, value, fields)
          return label.text.isEmpty ? [] : [label]
        }
      default: break
      }
    }
    labels.finish(&file)
    return file
  }

  private static func label(
    _ source: SourceText, _ line: Range<Int>, _ names: [String]
  ) throws(LabelsError) -> Label {
    let values = source.bytes[line].split(
      separator: ASCII.comma, maxSplits: max(0, names.count - 1), omittingEmptySubsequences: false)
    func value(_ name: String) -> ArraySlice<UInt8>? {
      names.firstIndex(of: name).flatMap { $0 < values.count ? values[$0] : nil }
    }
    func time(_ name: String) throws(LabelsError) -> MediaTime {
      guard let value = value(name) else { throw source.error(.missingTimes(.ass), at: line.lowerBound) }
      let range = source.trimmed(value.startIndex..<value.endIndex)
      do throws(LabelsFault) { return try TimeParser(bytes: source.bytes).clock(range) } catch {
        throw source.error(error, at: range.lowerBound)
      }
    }
    let (start, end) = (try time("start"), try time("end"))
    guard start <= end else { throw source.error(.endBeforeStart, at: value("end")?.startIndex ?? line.lowerBound) }
    let speaker = normalLine(value("name") ?? value("actor") ?? [])
    return label(value("text") ?? [], from: start, to: end, speaker: speaker, hasEnd: true)
  }

  /// Returns an event as a label.
  static func label(
    _ content: ArraySlice<UInt8>, from start: MediaTime, to end: MediaTime, speaker: String, hasEnd: Bool
  ) -> Label {
    var text = SubStationText(from: start)
    text.parse(content)
    var label = text.line.label(from: start, to: end, speaker: speaker.isEmpty ? nil : speaker)
    if !hasEnd || !text.hasTimes { label.words = [] }
    return label
  }
}

/// The text of an event of SubStation Alpha.
struct SubStationText {
  private(set) var line = SungLine()
  private(set) var hasTimes = false
  private var time: MediaTime
  private var piece: [UInt8] = []
  private var isDrawing = false
  /// The length of the piece, in microseconds.
  private var length: Int64 = 0

  init(from start: MediaTime) { time = start }

  mutating func parse(_ text: ArraySlice<UInt8>) {
    var rest = text
    // Behind the last one, nothing closes, and a text may have millions of braces.
    let lastClose = text.lastIndex(of: ASCII.closeBrace) ?? text.startIndex
    while let byte = rest.popFirst() {
      if byte == ASCII.openBrace, rest.startIndex <= lastClose, let close = rest.firstIndex(of: ASCII.closeBrace) {
        apply(rest[..<close])
        rest = rest[(close + 1)...]
      } else if byte == ASCII.backslash, let next = rest.first, "Nnh".utf8.contains(next) {
        rest.removeFirst()
        take(next == UInt8(ascii: "h") ? ASCII.space : ASCII.lineFeed)
      } else {
        take(byte)
      }
    }
    line.append(piece, at: time)
  }

  private mutating func take(_ byte: UInt8) {
    if !isDrawing { piece.append(byte) }
  }

  private mutating func apply(_ settings: ArraySlice<UInt8>) {
    for setting in settings.split(separator: ASCII.backslash) {
      let name = setting.prefix(while: ASCII.isLetter)
      let digits = setting.dropFirst(name.count).prefix(while: ASCII.isDigit).prefix(9)
      let number = digits.reduce(0 as Int64) { $0 * 10 + Int64($1 - 0x30) }
      switch String(decoding: name, as: UTF8.self) {
      case "p": isDrawing = number > 0
      case "k", "K", "kf", "ko":
        if hasTimes || !piece.isEmpty { line.append(piece, at: time) }
        piece = []
        hasTimes = true
        time = time.shifted(by: length)
        length = number * 10_000
      default: break
      }
    }
  }
}
