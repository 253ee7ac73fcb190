// Lists of times and titles, as people write them below a video or a podcast:
//
//   line  = [sign] ["("] time [")"] [dash time] [dash] title        a sign is a bullet or a dash
//
// With hours, or minutes and seconds. Without a second time, a chapter ends where the next one starts; the last one,
// with the recording. Other lines are left out.

enum TimesAndTitles {
  private struct Entry {
    let start: MediaTime
    let end: MediaTime?
    let title: Range<Int>
    /// Where the second time is.
    let offset: Int
  }

  /// Whether a line without blanks at its ends begins with a time.
  static func isLine(_ line: ArraySlice<UInt8>) -> Bool {
    guard let source = try? SourceText(Array(line.prefix(128))) else { return false }
    return (try? entry(source, 0..<source.bytes.count)) != nil
  }

  static func parse(_ source: SourceText, duration: MediaTime?) throws(LabelsError) -> LabelFile {
    var (lines, labels) = (TextLines(source), LabelCollector(source))
    while let range = lines.next() {
      let line = source.trimmed(range)
      guard !line.isEmpty else { continue }
      try labels.take(at: line.lowerBound) { () throws(LabelsError) in
        let entry = try entry(source, line)
        if let end = entry.end, end < entry.start { throw source.error(.endBeforeStart, at: entry.offset) }
        let title = normalText(source.bytes[entry.title])
        return [Label(start: entry.start, end: entry.end ?? PodcastChapters.openEnd, text: title)]
      }
    }
    var file = LabelFile()
    labels.finish(&file)
    PodcastChapters.close(&file.labels, duration)
    return file
  }

  private static func entry(_ source: SourceText, _ line: Range<Int>) throws(LabelsError) -> Entry {
    var position = line.lowerBound
    skip(["-", "*", "•", "–", "—", "·", "►", "▶"], source, line, &position)
    let offset = position
    guard let start = try time(source, line, &position) else {
      throw source.error(.missingTimes(.times), at: line.lowerBound)
    }
    guard position > offset else { throw source.error(.missingTimes(.times), at: line.lowerBound) }
    skip(dashes, source, line, &position)
    let second = position
    let end = try time(source, line, &position)
    skip(dashes, source, line, &position)
    return Entry(start: start, end: end, title: position..<line.upperBound, offset: second)
  }

  private static let dashes = ["-", "–", "—", ":", "|", "→"]

  /// Skips blanks, and one of some signs with the blanks behind it.
  private static func skip(_ signs: [String], _ source: SourceText, _ line: Range<Int>, _ position: inout Int) {
    position = source.trimmed(position..<line.upperBound).lowerBound
    for sign in signs where source.bytes[position..<line.upperBound].starts(with: sign.utf8) {
      position = source.trimmed(position + sign.utf8.count..<line.upperBound).lowerBound
      return
    }
  }

  /// Reads a time, which may be in brackets and must end with a blank, a sign or the line; nil if none is here.
  private static func time(
    _ source: SourceText, _ line: Range<Int>, _ position: inout Int
  ) throws(LabelsError) -> MediaTime? {
    let bytes = source.bytes
    let close: UInt8? =
      switch position < line.upperBound ? bytes[position] : 0 {
      case UInt8(ascii: "("): UInt8(ascii: ")")
      case ASCII.openBracket: ASCII.closeBracket
      default: nil
      }
    let start = close == nil ? position : position + 1
    var end = start
    while end < line.upperBound, ASCII.isDigit(bytes[end]) || ":.".utf8.contains(bytes[end]) { end += 1 }
    let behind = end
    if end > start, bytes[end - 1] == ASCII.colon { end -= 1 }
    guard bytes[start..<end].contains(ASCII.colon) else { return nil }
    let isWhole =
      if let close { behind < line.upperBound && bytes[behind] == close } else {
        behind == line.upperBound || !ASCII.isLetter(bytes[behind])
      }
    guard isWhole else { return nil }
    do throws(LabelsFault) {
      let time = try TimeParser(bytes: bytes).clock(start..<end)
      position = close == nil ? end : end + 1
      return time
    } catch {
      throw source.error(error, at: start)
    }
  }
}
