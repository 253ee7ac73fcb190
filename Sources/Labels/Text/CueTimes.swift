/// The line of times above a cue of WebVTT and SubRip: `START --> END`, and after a blank anything.
struct CueTimes {
  let start, end: MediaTime

  /// Parses a line; nil if it has no arrow.
  init?(_ source: SourceText, _ line: Range<Int>) throws(LabelsError) {
    guard let arrow = Self.arrow(in: source.bytes[line]) else { return nil }
    let first = source.trimmed(line.lowerBound..<arrow)
    let rest = source.trimmed(arrow + 3..<line.upperBound)
    let second = rest.lowerBound..<(source.bytes[rest].firstIndex(where: ASCII.isBlank) ?? rest.upperBound)
    start = try Self.time(source, first)
    end = try Self.time(source, second)
    guard start <= end else { throw source.error(.endBeforeStart, at: second.lowerBound) }
  }

  static func hasArrow(_ line: ArraySlice<UInt8>) -> Bool { arrow(in: line) != nil }

  private static func arrow(in line: ArraySlice<UInt8>) -> Int? {
    var position = line.startIndex
    while position + 2 < line.endIndex {
      if line[position + 2] == ASCII.greater, line[position + 1] == ASCII.minus, line[position] == ASCII.minus {
        return position
      }
      position += 1
    }
    return nil
  }

  private static func time(_ source: SourceText, _ range: Range<Int>) throws(LabelsError) -> MediaTime {
    do throws(LabelsFault) { return try TimeParser(bytes: source.bytes).clock(range) } catch {
      throw source.error(error, at: range.lowerBound)
    }
  }
}
