// Percent-encoding (RFC 3986 §2.1) of all bytes but the unreserved ones (§2.3), with upper-case digits, which
// signatures need.

/// Texts in URLs.
package enum URIEncoding {
  /// Encodes a name or a value of a query.
  package static func component(_ text: String) -> String { encoded(text, keepingSlashes: false) }

  /// Encodes a path, whose slashes stay.
  package static func path(_ text: String) -> String { encoded(text, keepingSlashes: true) }

  /// Decodes a text. Returns nil if an escape is broken or the result isn't UTF-8.
  package static func decoded(_ text: some StringProtocol) -> String? {
    bytes(text).flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// Decodes a text into bytes. Returns nil if an escape is broken.
  package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(Hexadecimal.value), let low = rest.popFirst().flatMap(Hexadecimal.value)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  /// Whether a byte is a letter, a digit, or one of `-._~`.
  package static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
    default: false
    }
  }

  private static func encoded(_ text: String, keepingSlashes: Bool) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    for byte in text.utf8 {
      if isUnreserved(byte) || keepingSlashes && byte == UInt8(ascii: "/") {
        result.append(byte)
      } else {
        result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}
