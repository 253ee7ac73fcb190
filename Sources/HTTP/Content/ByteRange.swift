// Range: bytes=first-last, first-, -suffix                        (RFC 9110 §14.1.2)
//
// Positions count from 0 and are inclusive. A `last` past the end is clamped; a suffix longer than the content selects
// all of it. A set in which no range lies within the content is unsatisfiable → 416. A field that isn't a set of
// ranges, or uses another unit, is ignored. More than 8 ranges, or two that overlap, cost the server more than an
// honest client gains, and are answered with the whole content (allowed by §14.2; CVE-2011-3192).

/// What a Range field asks for.
enum ByteRangeRequest: Equatable {
  /// No range, or none worth serving: send the whole content.
  case whole
  /// In the order requested; neither the array nor any range is empty.
  case ranges([Range<Int64>])
  case unsatisfiable

  private static let mostRanges = 8

  /// Parses the field for content of `length` bytes.
  init(_ field: String?, length: Int64) {
    guard let field, let equals = field.firstIndex(of: "="), field[..<equals].equalsIgnoringCase("bytes") else {
      self = .whole
      return
    }
    var ranges: [Range<Int64>] = []
    var count = 0
    for element in field[field.index(after: equals)...].split(separator: ",") {
      let text = element.trimmingBlanks()
      if text.isEmpty { continue }
      guard let range = Self.range(text, length) else {
        self = .whole
        return
      }
      count += 1
      if !range.isEmpty { ranges.append(range) }
    }
    if count == 0 || count > Self.mostRanges || Self.overlap(ranges) {
      self = .whole
    } else {
      self = ranges.isEmpty ? .unsatisfiable : .ranges(ranges)
    }
  }

  /// Returns nil if the text isn't a range, and an empty range if it lies outside the content.
  private static func range(_ text: String, _ length: Int64) -> Range<Int64>? {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { Array($0.utf8) }
    guard parts.count == 2 else { return nil }
    if parts[0].isEmpty {
      guard let suffix = ASCII.decimal(parts[1]) else { return nil }
      return max(0, length - suffix.value)..<length
    }
    guard let first = ASCII.decimal(parts[0]) else { return nil }
    if parts[1].isEmpty { return min(first.value, length)..<length }
    guard let last = ASCII.decimal(parts[1]), first.value <= last.value else { return nil }
    let end = last.value >= length ? length : last.value + 1
    return min(first.value, end)..<end
  }

  private static func overlap(_ ranges: [Range<Int64>]) -> Bool {
    let sorted = ranges.sorted { $0.lowerBound < $1.lowerBound }
    return zip(sorted, sorted.dropFirst()).contains { $0.upperBound > $1.lowerBound }
  }
}
