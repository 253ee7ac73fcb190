// SubRip, which has no specification; this is what players read:
//
//   file   = *(blank-line) *(cue 1*blank-line)
//   cue    = [number line-end] times line-end *(text line-end)
//   times  = time "-->" time [blank coordinates]                     coordinates left out
//   time   = [hours ":"] minutes ":" seconds [("," / ".") milliseconds]
//   text   = characters and tags (see CueText), which are left out

enum SubRip {
  static func parse(_ source: SourceText) throws(LabelsError) -> LabelFile {
    var lines = TextLines(source)
    var labels = LabelCollector(source)
    while var line = lines.next() {
      let first = source.trimmed(line)
      guard !first.isEmpty else { continue }
      if source.bytes[first].allSatisfy(ASCII.isDigit), let next = lines.next() { line = next }
      let start = lines.position
      var end = start
      while let text = lines.next(), !source.trimmed(text).isEmpty { end = text.upperBound }
      try labels.take(at: line.lowerBound) { () throws(LabelsError) in
        guard let times = try CueTimes(source, line) else {
          throw source.error(.missingTimes(.srt), at: line.lowerBound)
        }
        var parser = CueText(source, start..<end, .srt)
        return try parser.voices().map {
          Label(start: times.start, end: times.end, text: normalText($0.text.bytes[...]))
        }
      }
    }
    var file = LabelFile()
    labels.finish(&file)
    return file
  }

  static func write(_ labels: [Label]) -> WrittenLabels {
    var written = WrittenLabels()
    for (index, label) in labels.enumerated() {
      written.leaveOut(.words, if: !label.words.isEmpty)
      written.leaveOut(.speakers, if: label.speaker != nil)
      written.leaveOut(.markup, if: hasMarkup(label.text))
      if index > 0 { written.write("\n") }
      written.write(Int64(index + 1))
      written.write("\n")
      written.write(clock: label.start, fraction: ASCII.comma)
      written.write(" --> ")
      written.write(clock: label.end, fraction: ASCII.comma)
      written.write("\n")
      guard !label.text.isEmpty else { continue }
      written.write(label.text)
      written.write("\n")
    }
    return written
  }

  /// Whether reading the text would remove a part of it.
  private static func hasMarkup(_ text: String) -> Bool {
    guard text.utf8.contains(where: { $0 == ASCII.less || $0 == ASCII.openBrace }),
      let source = try? SourceText(Array(text.utf8))
    else { return false }
    var parser = CueText(source, 0..<source.bytes.count, .srt)
    return (try? parser.voices().first?.text.bytes) != source.bytes
  }
}
