extension Timestamp {
  /// Parses a time in RFC 3339 format, such as "2026-11-21T04:05:06Z" or "2026-11-21T05:05:06.789+01:00", for the years
  /// 1970 to 9999. Digits after the milliseconds are dropped; a leap second counts as the next second.
  package init?(rfc3339 text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.count <= 40, bytes[4] == 0x2D, bytes[7] == 0x2D,
      [0x54, 0x74, 0x20].contains(bytes[10]), bytes[13] == 0x3A, bytes[16] == 0x3A,
      let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]), let day = Self.number(bytes[8..<10]),
      let hour = Self.number(bytes[11..<13]), let minute = Self.number(bytes[14..<16]),
      let second = Self.number(bytes[17..<19]),
      year >= 1970, (1...12).contains(month), (1...Self.days(of: month, year)).contains(day), hour < 24, minute < 60,
      second <= 60
    else { return nil }
    var rest = bytes[19...]
    var thousandths: Int64 = 0
    if rest.first == 0x2E {
      let digits = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
      guard !digits.isEmpty else { return nil }
      thousandths = Self.number((digits.prefix(3) + [0x30, 0x30]).prefix(3)) ?? 0
      rest = rest.dropFirst(1 + digits.count)
    }
    guard let offset = Self.offset(rest) else { return nil }
    let days = Self.daysSince1970(year, month, day)
    self.init(milliseconds: ((days * 24 + hour) * 60 + minute - offset) * 60_000 + second * 1000 + thousandths)
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
  }

  /// Returns the minutes east of UTC in "Z" or "+01:00".
  private static func offset(_ text: ArraySlice<UInt8>) -> Int64? {
    let bytes = Array(text)
    if bytes == [0x5A] || bytes == [0x7A] { return 0 }
    guard bytes.count == 6, bytes[0] == 0x2B || bytes[0] == 0x2D, bytes[3] == 0x3A,
      let hours = number(bytes[1..<3]), let minutes = number(bytes[4..<6]), hours < 24, minutes < 60
    else { return nil }
    return (bytes[0] == 0x2D ? -1 : 1) * (hours * 60 + minutes)
  }

  private static func days(of month: Int64, _ year: Int64) -> Int64 {
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    return [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Int(month) - 1]
  }

  /// The inverse of `civilDate`; source: the same, days_from_civil.
  private static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let shifted = year - (month <= 2 ? 1 : 0)
    let (era, yearOfEra) = (shifted / 400, shifted % 400)
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}
