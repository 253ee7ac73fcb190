// Decodes PostgreSQL's binary format of values, in which results are requested: numbers are big-endian, and text and
// bytea are their bytes.
//
// numeric: int16 count of digits, int16 weight of the first, uint16 sign (0 positive, 0x4000 negative, others NaN and
// infinities), uint16 digits to show; then the digits, int16 each, in base 10,000. The value is the sum of
// digit[i] * 10,000^(weight - i). sum() of bigint is one.
//
// Source: the send functions in PostgreSQL's src/backend/utils/adt, and pg_type.dat for the OIDs.

import Storage
import Terms

enum BinaryFormat {
  /// Decodes a value, or returns nil if its type isn't supported or the bytes aren't of that type.
  static func value(_ bytes: [UInt8], type: UInt32) -> SQLValue? {
    switch type {
    case 16: bytes.count == 1 ? .integer(Int64(bytes[0])) : nil
    case 17: .blob(bytes)
    case 20: integer(bytes, Int64.self).map { .integer($0) }
    case 21: integer(bytes, Int16.self).map { .integer(Int64($0)) }
    case 23: integer(bytes, Int32.self).map { .integer(Int64($0)) }
    case 26, 28: integer(bytes, UInt32.self).map { .integer(Int64($0)) }
    case 5069: integer(bytes, UInt64.self).flatMap { Int64(exactly: $0) }.map { .integer($0) }
    case 700: integer(bytes, UInt32.self).map { .real(Double(Float(bitPattern: $0))) }
    case 701: integer(bytes, UInt64.self).map { .real(Double(bitPattern: $0)) }
    // "char" is one byte, which text that isn't ASCII doesn't fit in.
    case 18, 19, 25, 114, 705, 1042, 1043: String(validating: bytes, as: UTF8.self).map { .text($0) }
    case 1700: numeric(bytes)
    case 27: rowIdentity(bytes).map { .text($0) }
    case 2278: .null
    case 2950: uuid(bytes).map { .text($0) }
    default: nil
    }
  }

  private static func integer<T: FixedWidthInteger>(_ bytes: [UInt8], _: T.Type) -> T? {
    guard bytes.count == T.bitWidth / 8 else { return nil }
    return bytes.reduce(0) { $0 << 8 | T(truncatingIfNeeded: $1) }
  }

  /// A tid is the number of a page, uint32, and of a row in it, uint16.
  private static func rowIdentity(_ bytes: [UInt8]) -> String? {
    guard let page = integer(Array(bytes.prefix(4)), UInt32.self),
      let row = integer(Array(bytes.dropFirst(4)), UInt16.self)
    else { return nil }
    return "(\(page),\(row))"
  }

  private static func uuid(_ bytes: [UInt8]) -> String? {
    guard bytes.count == 16 else { return nil }
    return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { Hexadecimal.text(bytes[$0]) }.joined(separator: "-")
  }

  private static func numeric(_ bytes: [UInt8]) -> SQLValue? {
    let words = stride(from: 0, to: bytes.count - 1, by: 2).map {
      Int16(bitPattern: UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]))
    }
    guard words.count >= 4, words[0] >= 0, words.count == 4 + Int(words[0]), words[2] == 0 || words[2] == 0x4000 else {
      return nil
    }
    let (digits, weight, isNegative) = (words[4...], Int(words[1]), words[2] == 0x4000)
    if let whole = whole(digits, weight: weight, isNegative: isNegative) { return .integer(whole) }
    // Through text, which rounds once.
    var text = isNegative ? "-0" : "0"
    for digit in digits { text += String(Int(digit) + 10_000).dropFirst() }
    return Double(text + "e" + String(4 * (weight + 1 - digits.count))).map { .real($0) }
  }

  /// Returns the number if it is integral and an Int64.
  private static func whole(_ digits: ArraySlice<Int16>, weight: Int, isNegative: Bool) -> Int64? {
    guard digits.count <= weight + 1 || digits.isEmpty, weight < 5 else { return nil }
    var sum: Int64 = 0
    for place in 0..<max(weight + 1, 0) where !digits.isEmpty {
      let digit = place < digits.count ? Int64(digits[digits.startIndex + place]) : 0
      let (product, overflows) = sum.multipliedReportingOverflow(by: 10_000)
      let (next, exceeds) = product.addingReportingOverflow(isNegative ? -digit : digit)
      guard !overflows, !exceeds else { return nil }
      sum = next
    }
    return sum
  }
}
