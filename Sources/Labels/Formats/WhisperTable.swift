// The tables of openai-whisper (TSV) and whisper.cpp (CSV), in milliseconds:
//
//   tsv    start TAB end TAB text                 after a line "start TAB end TAB text"
//   csv    start,end,[speaker,]"text"             the first line may be names; a quote in the text is doubled

enum WhisperTable {
  /// Whether a line without blanks at its ends begins a file.
  static func format(_ line: ArraySlice<UInt8>) -> LabelFormat? {
    if line.starts(with: "start\tend\ttext".utf8) { return .tsv }
    if line.starts(with: "start,end,".utf8) { return .csv }
    let fields = line.split(separator: ASCII.comma, maxSplits: 2, omittingEmptySubsequences: false)
    let areNumbers = fields.prefix(2).allSatisfy { !$0.isEmpty && $0.allSatisfy(ASCII.isDigit) }
    return fields.count == 3 && areNumbers ? .csv : nil
  }

  static func parse(_ source: SourceText, _ format: LabelFormat) throws(LabelsError) -> LabelFile {
    var (rows, labels) = (Rows(source, format), LabelCollector(source))
    var isFirst = true
    while let (offset, fields) = rows.next() {
      let isHead = isFirst && fields.first?.bytes == Array("start".utf8)
      isFirst = false
      guard !isHead, fields.count > 1 || !(fields.first?.bytes.allSatisfy(ASCII.isBlank) ?? true) else { continue }
      try labels.take(at: offset) { () throws(LabelsError) in
        guard fields.count >= 3 else { throw source.error(.missingTimes(format), at: offset) }
        let (start, end) = (try time(fields[0], source), try time(fields[1], source))
        guard start <= end else { throw source.error(.endBeforeStart, at: fields[1].offset) }
        let speaker = format == .csv && fields.count > 3 ? normalLine(fields[2].bytes[...]) : ""
        let text = normalText(fields[fields.count - 1].bytes[...])
        return [Label(start: start, end: end, text: text, speaker: speaker.isEmpty ? nil : speaker)]
      }
    }
    var file = LabelFile()
    labels.finish(&file)
    return file
  }

  private static func time(_ field: Field, _ source: SourceText) throws(LabelsError) -> MediaTime {
    do throws(LabelsFault) {
      let time = try TimeParser(bytes: field.bytes).seconds(0..<field.bytes.count)
      return MediaTime(clamping: time.microseconds / 1000)
    } catch {
      throw source.error(error, at: field.offset)
    }
  }

  private struct Field {
    var bytes: [UInt8] = []
    let offset: Int
  }

  /// The rows of a table. The last field of TSV is the rest of the line; one in quotes may have commas and line ends.
  private struct Rows {
    private let source: SourceText
    private let separator: UInt8
    private var position = 0

    init(_ source: SourceText, _ format: LabelFormat) {
      (self.source, separator) = (source, format == .tsv ? ASCII.tab : ASCII.comma)
    }

    mutating func next() -> (offset: Int, fields: [Field])? {
      let bytes = source.bytes
      guard position < bytes.count else { return nil }
      let start = position
      var (fields, isQuoted) = ([Field(offset: start)], false)
      while position < bytes.count {
        let byte = bytes[position]
        position += 1
        let isQuote = byte == ASCII.quote && separator == ASCII.comma
        if isQuoted {
          let isDoubled = isQuote && position < bytes.count && bytes[position] == ASCII.quote
          if isDoubled { position += 1 }
          if isQuote, !isDoubled { isQuoted = false } else { fields[fields.count - 1].bytes.append(byte) }
        } else if isQuote, fields[fields.count - 1].bytes.isEmpty {
          isQuoted = true
        } else if byte == separator, fields.count < (separator == ASCII.tab ? 3 : 4) {
          fields.append(Field(offset: position))
        } else if byte == ASCII.lineFeed || byte == ASCII.carriageReturn {
          if byte == ASCII.carriageReturn, position < bytes.count, bytes[position] == ASCII.lineFeed { position += 1 }
          break
        } else {
          fields[fields.count - 1].bytes.append(byte)
        }
      }
      return (start, fields)
    }
  }
}
