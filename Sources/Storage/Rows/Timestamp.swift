import FoundationEssentials
import Terms

/// A time in UTC, to the millisecond.
package struct Timestamp: Sendable, Hashable, Comparable {
  /// Milliseconds since 1970-01-01T00:00:00Z, without leap seconds.
  package let milliseconds: Int64

  /// Creates a timestamp `milliseconds` after 1970-01-01T00:00:00Z.
  package init(milliseconds: Int64) {
    self.milliseconds = milliseconds
  }

  /// The current time of the system clock.
  package static var now: Timestamp { Clock.system.time }

  /// Identifies this start of this machine; "" if unknown.
  static let boot: String = {
    let text = FileManager.default.contents(atPath: "/proc/sys/kernel/random/boot_id") ?? Data()
    return String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }()

  /// The time in RFC 3339 format, "2026-11-21T04:05:06.789Z", for the years 0000 to 9999.
  package var rfc3339: String {
    let (days, time) = Self.floorDivide(milliseconds, by: 86_400_000)
    let date = Self.civilDate(daysSince1970: days)
    var text: [UInt8] = []
    text.reserveCapacity(24)
    Self.append(date.year, digits: 4, then: "-", to: &text)
    Self.append(date.month, digits: 2, then: "-", to: &text)
    Self.append(date.day, digits: 2, then: "T", to: &text)
    Self.append(time / 3_600_000, digits: 2, then: ":", to: &text)
    Self.append(time / 60_000 % 60, digits: 2, then: ":", to: &text)
    Self.append(time / 1000 % 60, digits: 2, then: ".", to: &text)
    Self.append(time % 1000, digits: 3, then: "Z", to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Whether the left time is earlier.
  package static func < (a: Timestamp, b: Timestamp) -> Bool {
    a.milliseconds < b.milliseconds
  }

  /// Returns the date in the proleptic Gregorian calendar.
  ///
  /// Years are counted from March 1, so that the leap day is the last of a year, in eras of 400 years = 146,097 days.
  /// With d the day of such a year, (5d + 2) / 153 is the month, where 0 is March. Source: H. Hinnant,
  /// "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
  private static func civilDate(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let (era, dayOfEra) = floorDivide(daysSince1970 + 719_468, by: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
  }

  private static func floorDivide(_ a: Int64, by b: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = a.quotientAndRemainder(dividingBy: b)
    return remainder < 0 ? (quotient - 1, remainder + b) : (quotient, remainder)
  }

  private static func append(_ value: Int64, digits: Int, then mark: Unicode.Scalar, to text: inout [UInt8]) {
    let start = text.count
    var rest = value.magnitude
    for _ in 0..<digits {
      text.insert(UInt8(ascii: "0") + UInt8(rest % 10), at: start)
      rest /= 10
    }
    text.append(UInt8(ascii: mark))
  }
}

extension Clock {
  /// The time of day.
  package var time: Timestamp { Timestamp(milliseconds: wallMilliseconds) }
}

extension Timestamp: Codable {
  /// Decodes a number of milliseconds since 1970.
  package init(from decoder: any Decoder) throws {
    self.init(milliseconds: try decoder.singleValueContainer().decode(Int64.self))
  }

  /// Encodes the number of milliseconds since 1970.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(milliseconds)
  }
}
