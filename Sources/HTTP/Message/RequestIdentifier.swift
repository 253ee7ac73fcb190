/// The `X-Request-Id` of a request.
enum RequestIdentifier {
  /// Returns the caller's ID if it is 1 to 128 harmless characters: it is logged and sent back in a header.
  static func callers(_ fields: HTTPFields) -> String? {
    guard fields.contains("X-Request-Id"), let id = fields["X-Request-Id"] else { return nil }
    let isSane =
      (1...128).contains(id.utf8.count)
      && id.utf8.allSatisfy { ASCII.isLetterOrDigit($0) || "-._~:+/=".utf8.contains($0) }
    return isSane ? id : nil
  }

  /// Formats a number as 13 base-32 characters, short enough for a String without an allocation.
  static func make(_ number: UInt64) -> String {
    unsafe String(unsafeUninitializedCapacity: 13) { bytes in
      var rest = number
      for index in 0..<13 {
        let digit = UInt8(rest & 31)
        unsafe bytes[index] = digit < 10 ? digit + 0x30 : digit + 0x57
        rest >>= 5
      }
      return 13
    }
  }
}
