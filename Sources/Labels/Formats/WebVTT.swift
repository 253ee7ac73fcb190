// WebVTT (https://www.w3.org/TR/webvtt1/):
//
//   file      = [BOM] "WEBVTT" [blank text] line-end *(header line-end) *(block blank-line / blank-line)
//   block     = [identifier line-end] times line-end *(text line-end)
//             / ("NOTE" / "STYLE" / "REGION") [blank text] line-end *(text line-end)         left out
//   times     = time *blank "-->" *blank time [settings]                                     settings left out
//   time      = [hours ":"] minutes ":" seconds "." milliseconds        a comma, and seconds alone are read, too
//   text      = characters, "&amp;" and other entities, and tags:
//               "<" time ">"            the next word begins here
//               "<v" [.class] name ">"  who speaks; a second one in a cue begins another label with the same times
//               "<" anything ">"        left out
//
// A line with an arrow ends the headers or the text above it. A NUL stands for U+FFFD. Headers `Language: en` name the
// language, as YouTube writes it.

enum WebVTT {
  /// Whether the first line of a file has the signature.
  static func isHeader(_ line: ArraySlice<UInt8>) -> Bool {
    guard line.starts(with: "WEBVTT".utf8) else { return false }
    return line.count == 6 || ASCII.isBlank(line[line.startIndex + 6])
  }

  static func parse(_ source: SourceText) throws(LabelsError) -> LabelFile {
    var lines = TextLines(source)
    guard let first = lines.next(), isHeader(source.bytes[first]) else { throw source.error(.missingHeader, at: 0) }
    var file = LabelFile()
    var line = lines.next()
    while let header = line.map({ source.bytes[$0] }), !header.isEmpty, !CueTimes.hasArrow(header) {
      if header.starts(with: "Language:".utf8) { file.language = normalLine(header.dropFirst(9)) }
      line = lines.next()
    }
    var labels = LabelCollector(source)
    while let current = line {
      guard !source.trimmed(current).isEmpty else {
        line = lines.next()
        continue
      }
      if isComment(source.bytes[current]) {
        repeat { line = lines.next() } while line.map { !source.trimmed($0).isEmpty } ?? false
        continue
      }
      line = try cue(from: current, source, &lines, &labels)
    }
    labels.finish(&file)
    return file
  }

  /// Parses the cue that begins with `line` and returns the line behind it.
  private static func cue(
    from line: Range<Int>, _ source: SourceText, _ lines: inout TextLines, _ labels: inout LabelCollector
  ) throws(LabelsError) -> Range<Int>? {
    var line = line
    if !CueTimes.hasArrow(source.bytes[line]), let next = lines.next() { line = next }
    let start = lines.position
    var (end, next) = (start, lines.next())
    while let line = next, !source.trimmed(line).isEmpty, !CueTimes.hasArrow(source.bytes[line]) {
      end = line.upperBound
      next = lines.next()
    }
    try labels.take(at: line.lowerBound) { () throws(LabelsError) in
      guard let times = try CueTimes(source, line, .vtt) else {
        throw source.error(.missingTimes(.vtt), at: line.lowerBound)
      }
      var parser = CueText(source, start..<end, .vtt)
      return try parser.voices().map { (voice) throws(LabelsError) in try label(times, voice, source) }
    }
    return next
  }

  private static func label(
    _ times: CueTimes, _ voice: CueText.Voice, _ source: SourceText
  ) throws(LabelsError) -> Label {
    if let late = voice.text.marks.first(where: { $0.time > times.end }) {
      throw source.error(.wordOutsideLabel, at: late.offset)
    }
    return Label(
      start: times.start, end: times.end, text: normalText(voice.text.bytes[...]), speaker: voice.speaker,
      words: try voice.text.words(from: times.start, to: times.end, source))
  }

  private static func isComment(_ line: ArraySlice<UInt8>) -> Bool {
    ["NOTE", "STYLE", "REGION"].contains { name in
      line.starts(with: name.utf8)
        && (line.count == name.utf8.count || ASCII.isBlank(line[line.startIndex + name.utf8.count]))
        && !CueTimes.hasArrow(line)
    }
  }

  static func write(_ labels: [Label]) -> WrittenLabels {
    var written = WrittenLabels()
    written.write("WEBVTT\n")
    for label in labels {
      written.write("\n")
      written.write(clock: label.start, fraction: ASCII.dot)
      written.write(" --> ")
      written.write(clock: label.end, fraction: ASCII.dot)
      written.write("\n")
      if let speaker = label.speaker {
        written.write("<v ")
        written.write(escaped: Array(speaker.utf8)[...])
        // Otherwise the end of the tag would make an arrow of them. Blanks at the end of a name don't count.
        if speaker.hasSuffix("--") { written.write(" ") }
        written.write(">")
      }
      written.write(inline: label, closes: false) { written, time in
        written.write("<")
        written.write(clock: time, fraction: ASCII.dot)
        written.write(">")
      } piece: { written, text in
        written.write(escaped: text)
      }
      if !label.text.isEmpty || label.speaker != nil { written.write("\n") }
    }
    return written
  }
}

extension WrittenLabels {
  fileprivate mutating func write(escaped text: ArraySlice<UInt8>) {
    for byte in text {
      switch byte {
      case ASCII.ampersand: write("&amp;")
      case ASCII.less: write("&lt;")
      case ASCII.greater: write("&gt;")
      case ASCII.lineFeed where bytes.last == byte: leaveOut(.lineBreaks)
      default: write(byte)
      }
    }
  }
}
