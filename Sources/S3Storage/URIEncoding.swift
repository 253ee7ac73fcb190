// Percent-encoding as signatures need it: all bytes but the unreserved ones (RFC 3986 §2.3), with upper-case digits.

/// Texts in URLs.
enum URIEncoding {
  /// Encodes a name or a value of a query.
  static func component(_ text: String) -> String { encoded(text.utf8, keepingSlashes: false) }

  /// Encodes a path, whose slashes stay.
  static func path(_ text: String) -> String { encoded(text.utf8, keepingSlashes: true) }

  /// Decodes a text. Returns nil if an escape is broken or the result isn't UTF-8.
  static func decoded(_ text: some StringProtocol) -> String? {
    bytes(text).flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// Decodes a text into bytes. Returns nil if an escape is broken.
  static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func encoded(_ bytes: some Sequence<UInt8>, keepingSlashes: Bool) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var result: [UInt8] = []
    for byte in bytes {
      if isUnreserved(byte) || keepingSlashes && byte == UInt8(ascii: "/") {
        result.append(byte)
      } else {
        result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "~"):
      true
    default: false
    }
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
