// SubRip, and SBV, which YouTube writes and which is alike; neither has a specification. This is what players read:
//
//   file   = *(blank-line) *(cue *blank-line)
//   cue    = [number line-end] times line-end *(text line-end / blank-line)
//   times  = time "-->" time [blank coordinates]                     coordinates left out
//          / time "," time                                           of SBV
//   time   = [[hours ":"] minutes ":"] seconds [("," / ".") milliseconds]
//   text   = characters and tags (see CueText), which are left out; "[br]" is a line break in SBV
//
// A cue ends where the next line of times is, with or without a blank line before it: a text may have blank lines, and
// some programs write none between cues. A number right above the times is the cue's if a blank line precedes it, or if
// the file's first cue has one. Behind a blank line, what looks like bad times begins a bad cue.

enum SubRip {
  static func parse(_ source: SourceText, _ format: LabelFormat) throws(LabelsError) -> LabelFile {
    var lines = TextLines(source)
    var labels = LabelCollector(source)
    var (head, cue, hasNumbers) = (CueHead(format), nil as Cue?, false)
    while let range = lines.next() {
      let line = source.bytes[source.trimmed(range)]
      let number = head.number
      if head.begins(with: line) {
        hasNumbers = hasNumbers || cue == nil && number != .none
        if number == .first || number == .behindText && hasNumbers { cue?.dropLastLine() }
        try cue?.finish(source, format, &labels)
        cue = Cue(times: range, start: lines.position, end: lines.position)
      } else if !line.isEmpty {
        if cue != nil {
          cue?.add(range)
        } else if head.isFirst {
          try labels.leaveOut(source.error(.missingTimes(format), at: range.lowerBound))
        }
      }
    }
    try cue?.finish(source, format, &labels)
    var file = LabelFile()
    labels.finish(&file)
    return file
  }

  /// A cue whose text isn't complete.
  private struct Cue {
    let times: Range<Int>
    let start: Int
    var end: Int
    /// Where the text ends without its last line.
    private var endBefore = 0

    init(times: Range<Int>, start: Int, end: Int) {
      (self.times, self.start, self.end, endBefore) = (times, start, end, end)
    }

    mutating func add(_ line: Range<Int>) { (endBefore, end) = (end, line.upperBound) }

    mutating func dropLastLine() { end = endBefore }

    func finish(_ source: SourceText, _ format: LabelFormat, _ labels: inout LabelCollector) throws(LabelsError) {
      try labels.take(at: times.lowerBound) { () throws(LabelsError) in
        guard let parsed = try CueTimes(source, times, format) else {
          throw source.error(.missingTimes(format), at: times.lowerBound)
        }
        var parser = CueText(source, start..<end, format == .sbv ? .sbv : .srt)
        return try parser.voices().map {
          Label(start: parsed.start, end: parsed.end, text: normalText($0.text.bytes[...]))
        }
      }
    }
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
      var head = CueHead(.srt)
      _ = head.begins(with: Array("0 --> 0".utf8)[...])
      for line in label.text.utf8.split(separator: ASCII.lineFeed, omittingEmptySubsequences: false) {
        // A text that would begin another cue.
        if head.begins(with: Array(line)[...]) {
          written.leaveOut(.markup)
          written.write("- ")
        }
        written.write(line)
        if !label.text.isEmpty { written.write("\n") }
      }
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

/// Finds the lines that begin a cue.
private struct CueHead {
  enum Number {
    case none
    /// The first line behind a blank one, or of the file.
    case first
    case behindText
  }

  private let format: LabelFormat
  /// Whether only blank lines are right above, or a number behind them.
  private var isBehindBlank = true
  /// The number that is right above.
  private(set) var number = Number.none
  /// Whether the line, which doesn't begin a cue, is the first behind a blank one.
  private(set) var isFirst = false

  init(_ format: LabelFormat) { self.format = format }

  /// Takes the next line, without blanks at its ends, and returns whether it is one of times.
  mutating func begins(with line: ArraySlice<UInt8>) -> Bool {
    let isTimes = CueTimes.isLine(line, format) || isBehindBlank && looksLikeTimes(line)
    let isNumber = !line.isEmpty && line.count <= 10 && line.allSatisfy(ASCII.isDigit)
    isFirst = isBehindBlank && !isNumber
    if isTimes {
      (isBehindBlank, number) = (false, .none)
    } else if line.isEmpty {
      (isBehindBlank, number) = (true, .none)
    } else if isNumber, isBehindBlank, number == .none {
      number = .first
    } else {
      (isBehindBlank, number) = (false, isNumber ? .behindText : .none)
    }
    return isTimes
  }

  private func looksLikeTimes(_ line: ArraySlice<UInt8>) -> Bool {
    guard format != .sbv else { return false }
    return CueTimes.hasArrow(line)
      || line.first.map(ASCII.isDigit) ?? false
        && zip(line, line.dropFirst()).contains { $0 == (ASCII.minus, ASCII.greater) }
  }
}
