import Glibc
import Terms

/// The byte classes of RFC 9110 §5.6 and RFC 3986, and the few bytes that have a meaning in HTTP.
enum ASCII {
  static let tab: UInt8 = 0x09
  static let lineFeed: UInt8 = 0x0A
  static let carriageReturn: UInt8 = 0x0D
  static let space: UInt8 = 0x20
  static let quote: UInt8 = 0x22
  static let percent: UInt8 = 0x25
  static let slash: UInt8 = 0x2F
  static let colon: UInt8 = 0x3A
  static let semicolon: UInt8 = 0x3B
  static let equals: UInt8 = 0x3D
  static let question: UInt8 = 0x3F
  static let backslash: UInt8 = 0x5C
  static let comma: UInt8 = 0x2C

  /// Bit masks of `tchar`, i.e. letters, digits, and `!#$%&'*+-.^_`|~`: bytes below 64, and from 64 to 127. They are
  /// literals because a computed static is looked up through `swift_once` for every byte.
  private static let tokenLow: UInt64 = 0x03FF_6CFA_0000_0000
  private static let tokenHigh: UInt64 = 0x57FF_FFFF_C7FF_FFFE

  /// Whether a byte is a `tchar`, allowed in names of methods and fields.
  static func isTokenByte(_ byte: UInt8) -> Bool {
    if byte < 64 { return tokenLow >> UInt64(byte) & 1 == 1 }
    return byte < 128 && tokenHigh >> UInt64(byte - 64) & 1 == 1
  }

  /// Whether a byte is allowed in a field value: blanks, visible characters, and bytes above 127.
  static func isFieldValueByte(_ byte: UInt8) -> Bool {
    byte >= 0x20 ? byte != 0x7F : byte == tab
  }

  static func isBlank(_ byte: UInt8) -> Bool { byte == space || byte == tab }

  static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

  static func isLetterOrDigit(_ byte: UInt8) -> Bool { isDigit(byte) || lowercased(byte) &- 0x61 < 26 }

  static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

  /// Returns the value of `1*DIGIT`, or nil for anything else. On overflow the value is `Int64.max` and `overflow` is
  /// true.
  static func decimal(_ digits: some Collection<UInt8>) -> (value: Int64, overflow: Bool)? {
    guard !digits.isEmpty else { return nil }
    var value: Int64 = 0
    var overflow = false
    for byte in digits {
      guard isDigit(byte) else { return nil }
      let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
      let (sum, stillTooLarge) = product.addingReportingOverflow(Int64(byte - 0x30))
      overflow = overflow || tooLarge || stillTooLarge
      value = overflow ? .max : sum
    }
    return (value, overflow)
  }

  /// Appends a number in hexadecimal digits, for the size of a chunk.
  static func append(hex number: Int, to bytes: inout [UInt8]) {
    var shift = max(0, (Int.bitWidth - 1 - number.leadingZeroBitCount) / 4 * 4)
    if number == 0 { shift = 0 }
    while shift >= 0 {
      let digit = UInt8(number >> shift & 15)
      bytes.append(digit < 10 ? digit + 0x30 : digit + 0x57)
      shift -= 4
    }
  }

  /// Decodes `%XX` once and, if `plusIsSpace`, `+` as a space. Returns nil if an escape is malformed or NUL, or if the
  /// result isn't UTF-8 or has a long run of combining marks.
  static func percentDecoded(_ text: ArraySlice<UInt8>, plusIsSpace: Bool = false) -> String? {
    // Most texts need no decoding, and ASCII needs no validation.
    guard text.contains(where: { $0 == percent || plusIsSpace && $0 == 0x2B || $0 >= 0x80 }) else {
      return String(decoding: text, as: UTF8.self)
    }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var index = text.startIndex
    while index < text.endIndex {
      let byte = text[index]
      index += 1
      if byte == percent {
        guard index + 1 < text.endIndex, let high = Hexadecimal.value(text[index]),
          let low = Hexadecimal.value(text[index + 1]),
          high | low != 0
        else { return nil }
        decoded.append(high << 4 | low)
        index += 2
      } else {
        decoded.append(plusIsSpace && byte == 0x2B ? space : byte)
      }
    }
    return decoded.span.hasLongMarkRun ? nil : String(validating: decoded, as: UTF8.self)
  }
}

extension ArraySlice<UInt8> {
  /// Returns the bytes without blanks at either end.
  func trimmingBlanks() -> ArraySlice<UInt8> {
    var trimmed = self
    while let first = trimmed.first, ASCII.isBlank(first) { trimmed = trimmed.dropFirst() }
    while let last = trimmed.last, ASCII.isBlank(last) { trimmed = trimmed.dropLast() }
    return trimmed
  }

  /// Whether the bytes are those of a literal.
  func equals(_ literal: StaticString) -> Bool {
    guard count == literal.utf8CodeUnitCount else { return false }
    return unsafe withUnsafeBytes { bytes in
      guard let own = bytes.baseAddress else { return true }
      return unsafe memcmp(own, literal.utf8Start, bytes.count) == 0
    }
  }

  /// Whether the bytes spell an ASCII word, ignoring case.
  func equalsIgnoringCase(_ word: String) -> Bool {
    count == word.utf8.count && zip(self, word.utf8).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
  }
}

extension StringProtocol {
  /// Returns the text without blanks at either end.
  func trimmingBlanks() -> String {
    String(decoding: Array(utf8)[...].trimmingBlanks(), as: UTF8.self)
  }

  /// Whether two ASCII words are equal, ignoring case.
  func equalsIgnoringCase(_ word: String) -> Bool {
    utf8.count == word.utf8.count && zip(utf8, word.utf8).allSatisfy { ASCII.lowercased($0) == ASCII.lowercased($1) }
  }
}
