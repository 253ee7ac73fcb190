// LRC, simple and enhanced (https://en.wikipedia.org/wiki/LRC_(file_format)):
//
//   line   = 1*("[" time "]") text       the text is sung at each of the times
//          / "[" name ":" value "]"      `offset`: milliseconds by which all lines come earlier; `ti`: the title;
//                                        `la`: the language; others are left out
//          / "[#" … / blank
//   time   = minutes ":" seconds [("." / "," / ":") fraction] / hours ":" minutes ":" seconds "." fraction
//   text   = characters, and in enhanced files "<" time ">" before a word
//
// There are no ends. A line ends where the next one with a later time begins, so that two lines with one time, such as
// a text and its translation, last equally long. A line without a text ends those before it and is no label, even at
// their own time. The last line ends after 5 s, or with the recording. A line with a later word ends with that word.

enum LRC {
  /// How long the last line lasts, in microseconds.
  private static let lastLine: Int64 = 5_000_000

  /// Whether a line without blanks at its ends is one of LRC.
  static func isLine(_ line: ArraySlice<UInt8>) -> Bool {
    guard line.first == ASCII.openBracket, let second = line.dropFirst().first else { return false }
    return ASCII.isDigit(second) || second == UInt8(ascii: "#") || isName(line) || second == ASCII.minus
  }

  /// Whether the line is `[name:…`.
  private static func isName(_ line: ArraySlice<UInt8>) -> Bool {
    let name = line.dropFirst().prefix(while: ASCII.isLetter)
    return line.first == ASCII.openBracket && !name.isEmpty && name.endIndex < line.endIndex
      && line[name.endIndex] == ASCII.colon
  }

  /// A line at one of its times.
  private struct Line {
    let time: MediaTime
    let text: InlineTimes
    /// How much later than the times in `text` it is sung, in microseconds.
    let delay: Int64
    let offset: Int

    var isEnd: Bool { text.isBlank }
  }

  static func parse(_ source: SourceText, duration: MediaTime?) throws(LabelsError) -> LabelFile {
    var (file, lines, offset) = (LabelFile(), [Line](), 0 as Int64)
    var labels = LabelCollector(source)
    var all = TextLines(source)
    while let range = all.next() {
      let line = source.trimmed(range)
      guard !line.isEmpty else { continue }
      do throws(LabelsError) {
        guard try !append(line, source, to: &lines) else { continue }
      } catch {
        try labels.leaveOut(error)
        continue
      }
      if try !header(line, source, &file, &offset) {
        try labels.leaveOut(source.error(.missingTimes(.lrc), at: line.lowerBound))
      }
    }
    let order = lines.indices.sorted { (lines[$0].time, $0) < (lines[$1].time, $1) }
    let sorted = order.map { lines[$0] }
    let ends = ends(of: sorted.map { ($0.time, $0.isEnd) }, duration: duration?.shifted(by: offset))
    for (line, end) in zip(sorted, ends) where !line.isEnd {
      try labels.take(at: line.offset) { () throws(LabelsError) in
        guard line.time.microseconds >= offset || end.microseconds > offset else {
          throw source.error(.endsBeforeZero, at: line.offset)
        }
        return [try label(line, end: end, offset, source)]
      }
    }
    labels.finish(&file)
    return file
  }

  /// Returns a line as a label, `offset` microseconds earlier.
  private static func label(
    _ line: Line, end: MediaTime, _ offset: Int64, _ source: SourceText
  ) throws(LabelsError) -> Label {
    let (start, delay) = (line.time.shifted(by: -line.delay), line.delay - offset)
    var words = try line.text.words(from: start, to: end.shifted(by: -line.delay), source)
    if delay != 0 {
      words.removeAll { $0.end.microseconds + delay <= 0 && $0.start.microseconds + delay < 0 }
      for index in words.indices {
        words[index].start = words[index].start.shifted(by: delay)
        words[index].end = words[index].end.shifted(by: delay)
      }
    }
    let last = end.shifted(by: -offset)
    return Label(
      start: line.time.shifted(by: -offset), end: max(last, words.last?.end ?? last),
      text: normalText(line.text.bytes[...]), words: words)
  }

  /// Adds a line for each of its times. Returns false if it begins with none.
  private static func append(
    _ range: Range<Int>, _ source: SourceText, to lines: inout [Line]
  ) throws(LabelsError) -> Bool {
    var (position, times) = (range.lowerBound, [MediaTime]())
    while position + 1 < range.upperBound, source.bytes[position] == ASCII.openBracket,
      ASCII.isDigit(source.bytes[position + 1]) || source.bytes[position + 1] == ASCII.minus,
      let close = source.bytes[position..<range.upperBound].firstIndex(of: ASCII.closeBracket)
    {
      do throws(LabelsFault) { times.append(try TimeParser(bytes: source.bytes).lrc(position + 1..<close)) } catch {
        // Behind a time, a bracket may belong to the text.
        guard times.isEmpty || !looksLikeTime(source.bytes[position + 1..<close]) else { break }
        throw source.error(error, at: position + 1)
      }
      position = close + 1
      guard lines.count + times.count <= 2 * LabelLimits.labels else {
        throw source.error(.tooManyLabels(limit: LabelLimits.labels), at: position)
      }
    }
    guard let first = times.first else { return false }
    let text = try inline(position..<range.upperBound, source)
    for time in times {
      let delay = time.microseconds - first.microseconds
      lines.append(Line(time: time, text: text, delay: delay, offset: range.lowerBound))
    }
    return true
  }

  private static func inline(_ range: Range<Int>, _ source: SourceText) throws(LabelsError) -> InlineTimes {
    var (text, position) = (InlineTimes(), range.lowerBound)
    while position < range.upperBound {
      let byte = source.bytes[position]
      if byte == ASCII.less, let close = tagEnd(source.bytes[(position + 1)..<range.upperBound]) {
        do throws(LabelsFault) {
          text.mark(try TimeParser(bytes: source.bytes).lrc(position + 1..<close), at: position + 1)
        } catch {
          throw source.error(error, at: position + 1)
        }
        position = close + 1
      } else {
        text.append(byte)
        position += 1
      }
    }
    return text
  }

  /// Returns where the “>” of a time is that begins a text, or nil if none does.
  fileprivate static func tagEnd(_ text: ArraySlice<UInt8>) -> Int? {
    // No longer ones are written, and a text may have millions of “<”.
    let time = text.prefix(32).prefix { $0 != ASCII.greater }
    return time.endIndex < text.endIndex && text[time.endIndex] == ASCII.greater && looksLikeTime(time)
      ? time.endIndex : nil
  }

  private static func looksLikeTime(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.contains(ASCII.colon)
      && bytes.allSatisfy { ASCII.isDigit($0) || $0 == ASCII.colon || $0 == ASCII.dot || $0 == ASCII.comma }
  }

  /// Reads a line without times. Returns false if it is none of a file's head.
  private static func header(
    _ range: Range<Int>, _ source: SourceText, _ file: inout LabelFile, _ offset: inout Int64
  ) throws(LabelsError) -> Bool {
    let line = source.bytes[range]
    if line.starts(with: "[#".utf8) { return true }
    guard isName(line), let colon = line.firstIndex(of: ASCII.colon),
      let close = line.lastIndex(of: ASCII.closeBracket)
    else { return false }
    let value = source.trimmed(colon + 1..<max(colon + 1, close))
    switch String(decoding: line[range.lowerBound + 1..<colon], as: UTF8.self).lowercased() {
    case "ti": file.title = normalLine(line[value])
    case "la": file.language = normalLine(line[value])
    case "offset":
      guard let milliseconds = Int64(String(decoding: line[value], as: UTF8.self)),
        abs(milliseconds) <= MediaTime.limit.microseconds / 1000
      else { throw source.error(.badTime, at: value.lowerBound) }
      offset = milliseconds * 1000
    default: break
    }
    return true
  }

  /// Returns the end of each line; those without a text only end others.
  static func ends(of lines: [(time: MediaTime, isEnd: Bool)], duration: MediaTime?) -> [MediaTime] {
    var ends = [MediaTime](repeating: .zero, count: lines.count)
    // The next later time, and the end of the lines that are at the current one.
    var (later, end): (MediaTime?, MediaTime) = (nil, .zero)
    for index in lines.indices.reversed() {
      let line = lines[index]
      if index == lines.count - 1 || lines[index + 1].time != line.time {
        if index < lines.count - 1 { later = lines[index + 1].time }
        let last = line.time.shifted(by: lastLine)
        end = later ?? max(line.time, duration.map { min($0, last) } ?? last)
      }
      if line.isEnd { end = line.time }
      ends[index] = end
    }
    return ends
  }

  static func write(_ labels: [Label]) -> WrittenLabels {
    var written = WrittenLabels()
    let times = labels.lazy.flatMap { [$0.start, $0.end] + $0.words.flatMap { [$0.start, $0.end] } }
    let digits = times.allSatisfy { $0.microseconds % 10_000 == 0 } ? 2 : 3
    var lines: [(time: MediaTime, isEnd: Bool)] = []
    // The label of each line; nil for a line that only ends others.
    var labelOfLine: [Label?] = []
    let kept = labels.filter { !$0.text.isEmpty }
    written.leaveOut(.emptyLabels, if: kept.count < labels.count)
    for (index, label) in kept.enumerated() {
      written.leaveOut(.speakers, if: label.speaker != nil)
      written.write("[")
      written.write(lrc: label.start, digits: digits)
      written.write("]")
      written.write(inline: label, closes: true) { written, time in
        written.write("<")
        written.write(lrc: time, digits: digits)
        written.write(">")
      } piece: { written, text in
        written.write(lrc: text)
      }
      written.write("\n")
      lines.append((label.start, false))
      labelOfLine.append(label)
      let next = index + 1 < kept.count ? kept[index + 1].start : nil
      guard label.end == label.start || next.map({ label.end < $0 }) ?? true else { continue }
      written.write("[")
      written.write(lrc: label.end, digits: digits)
      written.write("]\n")
      lines.append((label.end, true))
      labelOfLine.append(nil)
    }
    for (label, end) in zip(labelOfLine, ends(of: lines, duration: nil)) {
      guard let label else { continue }
      written.leaveOut(.ends, if: max(end, label.words.last?.end ?? end) != label.end)
    }
    return written
  }
}

extension WrittenLabels {
  /// Writes a text in one line. A blank keeps what looks like a time from being read as one.
  fileprivate mutating func write(lrc text: ArraySlice<UInt8>) {
    for (index, byte) in zip(text.indices, text) {
      leaveOut(.lineBreaks, if: byte == ASCII.lineFeed)
      write(byte == ASCII.lineFeed ? ASCII.space : byte)
      let isAfterTime = bytes.dropLast().last == ASCII.closeBracket
      let beginsTime =
        byte == ASCII.openBracket && isAfterTime && index == text.startIndex
        || byte == ASCII.less && LRC.tagEnd(text[(index + 1)...]) != nil
      if beginsTime {
        leaveOut(.markup)
        write(ASCII.space)
      }
    }
  }

  /// Writes minutes, seconds and a fraction.
  fileprivate mutating func write(lrc time: MediaTime, digits: Int) {
    leaveOut(.precision, if: !time.isWholeMilliseconds)
    let milliseconds = time.milliseconds
    write(milliseconds / 60_000, width: 2)
    write(ASCII.colon)
    write(milliseconds / 1000 % 60, width: 2)
    write(ASCII.dot)
    if digits == 2 { write(milliseconds % 1000 / 10, width: 2) } else { write(milliseconds % 1000, width: 3) }
  }
}
