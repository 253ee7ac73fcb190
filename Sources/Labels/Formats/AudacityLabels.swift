// Audacity's label track (https://manual.audacityteam.org/man/importing_and_exporting_labels.html):
//
//   line  = start TAB end [TAB text]            in seconds, with a comma in some languages
//         / "\" TAB low TAB high                frequencies of the label above, in Hz; a negative one is none

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
    var line = lines.next()
    while let current = line {
      line = lines.next()
      guard !source.trimmed(current).isEmpty, source.bytes[current.lowerBound] != ASCII.backslash else { continue }
      try labels.take(at: current.lowerBound) { () throws(LabelsError) in
        guard let tab = source.bytes[current].firstIndex(of: ASCII.tab) else {
          throw source.error(.missingTimes(.audacity), at: current.lowerBound)
        }
        let start = try time(current.lowerBound..<tab)
        let second = source.bytes[(tab + 1)..<current.upperBound].firstIndex(of: ASCII.tab) ?? current.upperBound
        let end = try time(tab + 1..<second)
        guard start <= end else { throw source.error(.endBeforeStart, at: tab + 1) }
        var label = Label(start: start, end: end, text: normalText(source.bytes[second..<current.upperBound]))
        if let line, source.bytes[line].first == ASCII.backslash {
          let fields = source.bytes[line].split(separator: ASCII.tab, maxSplits: 2)
          func hz(_ index: Int) throws(LabelsError) -> Double? {
            guard index < fields.count, fields[index].first != ASCII.minus else { return nil }
            return try time(fields[index].startIndex..<fields[index].endIndex).seconds
          }
          let (low, high) = (try hz(1), try hz(2))
          if let low, let high, low > high { throw source.error(.bandUpsideDown, at: line.lowerBound) }
          (label.details.minHz, label.details.maxHz) = (low, high)
        }
        return [label]
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
      let band = [label.details.minHz, label.details.maxHz]
      guard band != [nil, nil] else { continue }
      written.write("\\")
      for hz in band {
        written.write(ASCII.tab)
        if let hz { written.write(hz: hz, digits: 6) } else { written.write("-1.000000") }
      }
      written.write("\n")
    }
    return written
  }
}
