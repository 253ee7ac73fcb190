// Times as the formats write them, with a point or a comma before the fraction:
//
//   clock     [ [ hours ":" ] minutes ":" ] seconds [ ( "." / "," ) 1*DIGIT ]
//   seconds   1*DIGIT [ ( "." / "," ) *DIGIT ] [ ( "e" / "E" ) [ "+" / "-" ] 1*DIGIT ]
//
// Seconds after a colon are below 60, and so are minutes after hours. More than six digits of a fraction are rounded.

/// Parses times out of a text.
struct TimeParser {
  let bytes: [UInt8]

  /// Parses `bytes[range]` as a clock's time. Without hours, minutes may be any number; without minutes, it fails.
  /// With `fewestParts` 1, seconds alone are a time, too.
  func clock(_ range: Range<Int>, fewestParts: Int = 2) throws(LabelsFault) -> MediaTime {
    try clock(range, fewestParts, mayHaveColonBeforeFraction: false)
  }

  /// Parses a time of LRC: minutes, seconds and a fraction, or three numbers, the last of which is a fraction.
  func lrc(_ range: Range<Int>) throws(LabelsFault) -> MediaTime {
    try clock(range, 2, mayHaveColonBeforeFraction: true)
  }

  private func clock(
    _ range: Range<Int>, _ fewestParts: Int, mayHaveColonBeforeFraction: Bool
  ) throws(LabelsFault) -> MediaTime {
    var position = range.lowerBound
    if position < range.upperBound, bytes[position] == ASCII.minus {
      _ = try clock(
        position + 1..<range.upperBound, fewestParts, mayHaveColonBeforeFraction: mayHaveColonBeforeFraction)
      throw .negativeTime
    }
    var parts = (0 as Int64, 0 as Int64, 0 as Int64)
    var count = 0
    while true {
      let start = position
      let number = try digits(&position, range.upperBound)
      guard position > start, count < 3 else { throw .badTime }
      parts = (parts.1, parts.2, number)
      count += 1
      guard position < range.upperBound, bytes[position] == ASCII.colon else { break }
      position += 1
    }
    var fraction: Int64 = 0
    if position < range.upperBound {
      guard bytes[position] == ASCII.dot || bytes[position] == ASCII.comma else { throw .badTime }
      position += 1
      let start = position
      fraction = microseconds(&position, range.upperBound)
      guard position > start, position == range.upperBound else { throw .badTime }
    } else if count == 3, mayHaveColonBeforeFraction {
      // [mm:ss:xx], as old players write it.
      var start = range.upperBound
      while bytes[start - 1] != ASCII.colon { start -= 1 }
      fraction = microseconds(&start, range.upperBound)
      parts = (0, parts.0, parts.1)
      count = 2
    }
    guard count >= fewestParts, count == 1 || parts.2 < 60, count <= 2 || parts.1 < 60 else { throw .badTime }
    return try time(seconds: (parts.0 * 60 + parts.1) * 60 + parts.2, fraction)
  }

  /// Parses `bytes[range]` as decimal seconds.
  func seconds(_ range: Range<Int>) throws(LabelsFault) -> MediaTime {
    var position = range.lowerBound
    let isNegative = position < range.upperBound && bytes[position] == ASCII.minus
    if isNegative { position += 1 }
    let start = position
    let whole = try digits(&position, range.upperBound)
    guard position > start else { throw .badTime }
    var fraction: Int64 = 0
    if position < range.upperBound, bytes[position] == ASCII.dot || bytes[position] == ASCII.comma {
      position += 1
      fraction = microseconds(&position, range.upperBound)
    }
    if position < range.upperBound { return try seconds(withExponent: range) }
    guard !isNegative || whole == 0 && fraction == 0 else { throw .negativeTime }
    return try time(seconds: whole, fraction)
  }

  private func seconds(withExponent range: Range<Int>) throws(LabelsFault) -> MediaTime {
    let text = String(decoding: bytes[range].map { $0 == ASCII.comma ? ASCII.dot : $0 }, as: UTF8.self)
    guard text.utf8.allSatisfy({ ASCII.isDigit($0) || "+-.eE".utf8.contains($0) }), let seconds = Double(text) else {
      throw .badTime
    }
    guard seconds >= 0 else { throw .negativeTime }
    guard let time = MediaTime(seconds: seconds) else { throw .timeTooLarge }
    return time
  }

  private func time(seconds: Int64, _ fraction: Int64) throws(LabelsFault) -> MediaTime {
    guard let time = MediaTime(microseconds: seconds * 1_000_000 + fraction) else { throw .timeTooLarge }
    return time
  }

  /// Parses a whole number of at most ten digits.
  private func digits(_ position: inout Int, _ end: Int) throws(LabelsFault) -> Int64 {
    var number: Int64 = 0
    while position < end, ASCII.isDigit(bytes[position]) {
      number = number * 10 + Int64(bytes[position] - 0x30)
      guard number < 10_000_000_000 else { throw .timeTooLarge }
      position += 1
    }
    return number
  }

  /// Parses the digits of a fraction of a second and rounds them to microseconds.
  private func microseconds(_ position: inout Int, _ end: Int) -> Int64 {
    var (number, weight, roundsUp) = (0 as Int64, 100_000 as Int64, false)
    while position < end, ASCII.isDigit(bytes[position]) {
      let digit = Int64(bytes[position] - 0x30)
      if weight > 0 { number += digit * weight } else if !roundsUp, weight == 0 { roundsUp = digit >= 5 }
      weight = weight > 0 ? weight / 10 : -1
      position += 1
    }
    return number + (roundsUp ? 1 : 0)
  }
}
