// HTTP-date (RFC 9110 §5.6.7). Written only as IMF-fixdate, `Sun, 06 Nov 1994 08:49:37 GMT`. Read in that form and the
// two obsolete ones, `Sunday, 06-Nov-94 08:49:37 GMT` and `Sun Nov  6 08:49:37 1994`. Civil dates follow Howard
// Hinnant's "chrono-compatible low-level date algorithms", with days counted from 1970-01-01.

/// A time in whole seconds, as in `Date` and `Last-Modified`.
package struct HTTPDate: Sendable, Comparable {
  /// Seconds since 1970-01-01T00:00:00Z.
  package let seconds: Int64

  /// Creates a date from seconds since 1970.
  package init(seconds: Int64) {
    self.seconds = seconds
  }

  /// Parses any of the three forms. Fails for anything else.
  package init?(_ text: String) {
    var words = text.split { $0 == " " || $0 == "," || $0 == "-" }.map(String.init)
    if words.count == 5 { words = [words[0], words[2], words[1], words[4], words[3], "GMT"] }
    guard words.count == 6, words[5] == "GMT", let day = Int64(words[1]), (1...31).contains(day),
      let month = Self.months.firstIndex(of: words[2]), let year = Self.year(words[3])
    else { return nil }
    let time = words[4].split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) ?? -1 }
    guard time.count == 3, (0...23).contains(time[0]), (0...59).contains(time[1]), (0...60).contains(time[2]) else {
      return nil
    }
    let days = Self.days(year: year, month: Int64(month) + 1, day: day)
    seconds = days * 86_400 + time[0] * 3600 + time[1] * 60 + time[2]
  }

  /// Whether the left date is earlier.
  package static func < (left: HTTPDate, right: HTTPDate) -> Bool { left.seconds < right.seconds }

  /// The date as IMF-fixdate.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  var bytes: [UInt8] {
    let days = (seconds >= 0 ? seconds : seconds - 86_399) / 86_400
    let second = seconds - days * 86_400
    let (year, month, day) = Self.civil(days)
    var out: [UInt8] = []
    out.reserveCapacity(29)
    out.append(contentsOf: Self.weekdays[Int(((days + 4) % 7 + 7) % 7)].utf8)
    out.append(contentsOf: ", ".utf8)
    Self.append(day, to: &out)
    out.append(ASCII.space)
    out.append(contentsOf: Self.months[Int(month) - 1].utf8)
    out.append(ASCII.space)
    Self.append(year / 100, to: &out)
    Self.append(year % 100, to: &out)
    for (mark, value) in [(ASCII.space, second / 3600), (ASCII.colon, second / 60 % 60), (ASCII.colon, second % 60)] {
      out.append(mark)
      Self.append(value, to: &out)
    }
    out.append(contentsOf: " GMT".utf8)
    return out
  }

  private static func append(_ twoDigits: Int64, to out: inout [UInt8]) {
    out.append(UInt8(twoDigits / 10 % 10) + 0x30)
    out.append(UInt8(twoDigits % 10) + 0x30)
  }

  /// A two-digit year more than 50 years ahead belongs to the previous century (RFC 9110 §5.6.7); a fixed pivot of 70
  /// does that today.
  private static func year(_ text: String) -> Int64? {
    guard let year = Int64(text), year >= 0 else { return nil }
    switch text.utf8.count {
    case 4: return year
    case 2: return year < 70 ? 2000 + year : 1900 + year
    default: return nil
    }
  }

  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let year = month <= 2 ? year - 1 : year
    let era = (year >= 0 ? year : year - 399) / 400
    let yearOfEra = year - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
}
