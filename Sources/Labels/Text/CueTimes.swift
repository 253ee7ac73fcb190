/// The line of times above a cue of WebVTT, SubRip and SBV: `START --> END`, or `START,END` in SBV, and then anything.
struct CueTimes {
  let start, end: MediaTime

  /// Parses a line; nil if it has no arrow, or no comma in SBV.
  init?(_ source: SourceText, _ line: Range<Int>, _ format: LabelFormat) throws(LabelsError) {
    guard let separator = Self.separator(in: source.bytes[line], format) else { return nil }
    let first = source.trimmed(line.lowerBound..<separator.lowerBound)
    let rest = source.trimmed(separator.upperBound..<line.upperBound)
    let second = rest.lowerBound..<Self.times(source.bytes[rest]).endIndex
    start = try Self.time(source, first)
    end = try Self.time(source, second)
    guard start <= end else { throw source.error(.endBeforeStart, at: second.lowerBound) }
  }

  static func hasArrow(_ line: ArraySlice<UInt8>) -> Bool { separator(in: line, .vtt) != nil }

  /// Whether a line is one of times wherever it stands: two times, and then anything.
  static func isLine(_ line: ArraySlice<UInt8>, _ format: LabelFormat) -> Bool {
    guard let separator = separator(in: line, format) else { return false }
    let first = times(line[..<separator.lowerBound])
    let second = times(line[separator.upperBound...].drop(while: ASCII.isBlank))
    return !first.isEmpty && !second.isEmpty && line[first.endIndex..<separator.lowerBound].allSatisfy(ASCII.isBlank)
      && (format != .sbv || first.contains(ASCII.colon) && second.contains(ASCII.colon))
  }

  private static func separator(in line: ArraySlice<UInt8>, _ format: LabelFormat) -> Range<Int>? {
    if format == .sbv { return line.firstIndex(of: ASCII.comma).map { $0..<$0 + 1 } }
    var position = line.startIndex
    while position + 2 < line.endIndex {
      if line[position + 2] == ASCII.greater, line[position + 1] == ASCII.minus, line[position] == ASCII.minus {
        return position..<position + 3
      }
      position += 1
    }
    return nil
  }

  /// Returns the time at the beginning of a text; empty if there is none. Settings may follow without a blank.
  private static func times(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let sign = text.first == ASCII.minus ? 1 : 0
    let rest = text.dropFirst(sign).prefix { ASCII.isDigit($0) || ":.,".utf8.contains($0) }
    return rest.first.map(ASCII.isDigit) ?? false ? text[text.startIndex..<rest.endIndex] : text.prefix(0)
  }

  private static func time(_ source: SourceText, _ range: Range<Int>) throws(LabelsError) -> MediaTime {
    do throws(LabelsFault) { return try TimeParser(bytes: source.bytes).clock(range, fewestParts: 1) } catch {
      throw source.error(error, at: range.lowerBound)
    }
  }
}
