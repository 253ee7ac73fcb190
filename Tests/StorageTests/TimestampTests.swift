import Foundation
import Storage
import Testing

@Suite struct TimestampTests {
  @Test(
    "timestamps are written as RFC 3339 in UTC",
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"), (1_795_233_906_789, "2026-11-21T04:05:06.789Z"),
      (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (951_868_800_000, "2000-03-01T00:00:00.000Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
      (4_107_542_399_999, "2100-02-28T23:59:59.999Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
    ] as [(Int64, String)])
  func text(milliseconds: Int64, text: String) {
    #expect(Timestamp(milliseconds: milliseconds).rfc3339 == text)
  }

  @Test("every day of eight centuries is written according to the calendar")
  func everyDay() throws {
    var (year, month, day) = (1600, 1, 1)
    let start: Int64 = -135_140
    for index in 0..<Int64(2 * 146_097) {
      let text = Timestamp(milliseconds: (start + index) * 86_400_000).rfc3339
      let expected = [(year, 4), (month, 2), (day, 2)].map { value, digits in
        String(repeating: "0", count: digits - String(value).count) + String(value)
      }
      try #require(text == expected.joined(separator: "-") + "T00:00:00.000Z")
      let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
      let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
      day += 1
      if day > lengths[month - 1] { (month, day) = (month + 1, 1) }
      if month > 12 { (year, month) = (year + 1, 1) }
    }
  }

  @Test("now is between the clock's readings around it")
  func now() {
    let before = Date().timeIntervalSince1970
    let now = Timestamp.now
    let after = Date().timeIntervalSince1970
    #expect(Double(now.milliseconds) >= before * 1000 - 1 && Double(now.milliseconds) <= after * 1000 + 1)
  }

  @Test("earlier compares as less")
  func order() {
    #expect(Timestamp(milliseconds: 1) < Timestamp(milliseconds: 2))
  }
}
