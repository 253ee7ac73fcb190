/// A position in a recording, in whole microseconds from its start. Never negative.
///
/// An integer, so that times compare and print exactly; every format here has milliseconds or microseconds.
package struct MediaTime: Hashable, Comparable, Sendable {
  /// Microseconds from the start, 0 … `limit`.
  package let microseconds: Int64

  /// The greatest time that is accepted: a billion seconds, which a `Double` still holds to the microsecond.
  package static let limit = MediaTime(unchecked: 1_000_000_000_000_000)
  /// The start of the recording.
  package static let zero = MediaTime(unchecked: 0)

  private init(unchecked microseconds: Int64) { self.microseconds = microseconds }

  /// Creates a time, unless it is out of range.
  package init?(microseconds: Int64) {
    guard (0...Self.limit.microseconds).contains(microseconds) else { return nil }
    self.microseconds = microseconds
  }

  /// Creates the nearest time in range.
  package init(clamping microseconds: Int64) {
    self.microseconds = min(max(0, microseconds), Self.limit.microseconds)
  }

  /// Creates a time from seconds, rounded to the microsecond. Fails if they are out of range or no number.
  package init?(seconds: Double) {
    let microseconds = (seconds * 1_000_000).rounded()
    guard (0...Double(Self.limit.microseconds)).contains(microseconds) else { return nil }
    self.microseconds = Int64(microseconds)
  }

  /// The time in seconds.
  package var seconds: Double { Double(microseconds) / 1_000_000 }

  /// The time in milliseconds, rounded half up.
  var milliseconds: Int64 { (microseconds + 500) / 1000 }
  /// Whether whole milliseconds hold the time.
  var isWholeMilliseconds: Bool { microseconds % 1000 == 0 }

  /// Returns the time moved by a number of microseconds of either sign, clamped to the range.
  func shifted(by microseconds: Int64) -> MediaTime {
    let (sum, overflow) = self.microseconds.addingReportingOverflow(microseconds)
    return MediaTime(clamping: overflow ? (microseconds < 0 ? 0 : .max) : sum)
  }

  /// Whether the left time is earlier.
  package static func < (a: Self, b: Self) -> Bool { a.microseconds < b.microseconds }
}
