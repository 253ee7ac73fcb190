// IPv6address of RFC 3986 §3.2.2: eight groups of 1 to 4 hexadecimal digits separated by colons. One run of groups may
// be replaced by "::", and the last two groups may be written as an IPv4 address. Zones aren't accepted: they mean
// nothing to another machine.

import Terms

/// The textual form of an IPv6 address.
enum IPv6Address {
  static func isValid(_ text: ArraySlice<UInt8>) -> Bool {
    guard text.count <= 45, let (front, back) = halves(text) else { return false }
    guard let back else { return groups(front, mayEndInIPv4: true) == 8 }
    guard let before = groups(front, mayEndInIPv4: false), let behind = groups(back, mayEndInIPv4: true) else {
      return false
    }
    return before + behind <= 7
  }

  /// Splits the text at its "::". Returns nil if there is more than one.
  private static func halves(_ text: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>?)? {
    var gaps = text.indices.dropLast().filter { text[$0] == ASCII.colon && text[$0 + 1] == ASCII.colon }
    guard let gap = gaps.popLast() else { return (text, nil) }
    return gaps.isEmpty ? (text[..<gap], text[(gap + 2)...]) : nil
  }

  /// Returns the number of 16-bit groups, or nil if the text is malformed.
  private static func groups(_ text: ArraySlice<UInt8>, mayEndInIPv4: Bool) -> Int? {
    if text.isEmpty { return 0 }
    let parts = text.split(separator: ASCII.colon, omittingEmptySubsequences: false)
    guard let last = parts.last, parts.dropLast().allSatisfy(isGroup) else { return nil }
    if isGroup(last) { return parts.count }
    return mayEndInIPv4 && isIPv4(last) ? parts.count + 1 : nil
  }

  private static func isGroup(_ text: ArraySlice<UInt8>) -> Bool {
    (1...4).contains(text.count) && text.allSatisfy { Hexadecimal.value($0) != nil }
  }

  private static func isIPv4(_ text: ArraySlice<UInt8>) -> Bool {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count == 4
      && parts.allSatisfy { part in
        (1...3).contains(part.count) && (part.count == 1 || part.first != UInt8(ascii: "0"))
          && (ASCII.decimal(part).map { $0.value < 256 } ?? false)
      }
  }
}
