import Testing

@testable import Labels

struct LabelTests {
  @Test(
    "a window from 1 to 3 s keeps what overlaps it, and marks from its start up to its end",
    arguments: [
      (0, 1000, nil), (500, 1500, 0..<500), (1000, 1000, 0..<0), (2999, 2999, 1999..<1999), (3000, 3000, nil),
      (3000, 4000, nil), (0, 4000, 0..<2000),
    ] as [(Int64, Int64, Range<Int64>?)])
  func cut(start: Int64, end: Int64, expected: Range<Int64>?) {
    let label = Label(start, end, "a", "Ann", words: [TimedWord(start, end, "a"), TimedWord(5000, 6000, "b")])
    let part = expected.map { range in
      let (first, last) = (range.lowerBound, range.upperBound)
      return Label(first, last, "a", "Ann", words: [TimedWord(first, last, "a")])
    }
    #expect(label.cut(from: .ms(1000), to: .ms(3000)) == part)
  }
}
