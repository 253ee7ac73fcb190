// Audacity's label track (https://manual.audacityteam.org/man/importing_and_exporting_labels.html):
//
//   line  = start TAB end [TAB text]            in seconds, with a comma in some languages
//         / "\" TAB low TAB high                frequencies of the label above, left out

enum AudacityLabels {
  /// Whether a line without blanks at its ends begins with a number and a tab.
  static func isLine(_ line: ArraySlice<UInt8>) -> Bool {
    let number = line.prefix { $0 != ASCII.tab }
    return number.endIndex < line.endIndex && number.first.map { ASCII.isDigit($0) || $0 == ASCII.minus } ?? false
      && number.allSatisfy { ASCII.isDigit($0) || "+-.,eE".utf8.contains($0) }
  }

  static func parse(_ source: SourceText) throws(LabelsError) -> LabelFile {
    var lines = TextLines(source)
    var labels = LabelCollector(source)
    let parser = TimeParser(bytes: source.bytes)
    func time(_ range: Range<Int>) throws(LabelsError) -> MediaTime {
      do throws(LabelsFault) { return try parser.seconds(source.trimmed(range)) } catch {
        throw source.error(error, at: range.lowerBound)
      }
    }
    while let line = lines.next() {
      guard !source.trimmed(line).isEmpty, source.bytes[line.lowerBound] != ASCII.backslash else { continue }
      try labels.take(at: line.lowerBound) { () throws(LabelsError) in
        guard let tab = source.bytes[line].firstIndex(of: ASCII.tab) else {
          throw source.error(.missingTimes(.audacity), at: line.lowerBound)
        }
        let start = try time(line.lowerBound..<tab)
        let second = source.bytes[(tab + 1)..<line.upperBound].firstIndex(of: ASCII.tab) ?? line.upperBound
        let end = try time(tab + 1..<second)
        guard start <= end else { throw source.error(.endBeforeStart, at: tab + 1) }
        return [Label(start: start, end: end, text: normalText(source.bytes[second..<line.upperBound]))]
      }
    }
    var file = LabelFile()
    labels.finish(&file)
    return file
  }

  static func write(_ labels: [Label]) -> WrittenLabels {
    var written = WrittenLabels()
    for label in labels {
      written.leaveOut(.words, if: !label.words.isEmpty)
      written.leaveOut(.speakers, if: label.speaker != nil)
      written.write(seconds: label.start, digits: 6)
      written.write(ASCII.tab)
      written.write(seconds: label.end, digits: 6)
      written.write(ASCII.tab)
      written.write(line: label.text)
      written.write("\n")
    }
    return written
  }
}
