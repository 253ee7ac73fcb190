/// Returns a statement with its arguments as PostgreSQL has them: each `?` becomes `$1`, `$2`, and so on, except in
/// text literals, quoted names, and comments to the end of a line.
///
/// The statements are Stillwave's own, so forms that they don't use aren't known here: `E'\''`, `$$…$$`, `/* … */`, and
/// operators with a question mark.
func numberingArguments(of sql: String) -> String {
  var numbered: [UInt8] = []
  numbered.reserveCapacity(sql.utf8.count + 16)
  var count = 0
  /// What ends the literal, name or comment in progress.
  var end: UInt8?
  var previous: UInt8 = 0
  for byte in sql.utf8 {
    defer { previous = byte }
    if let expected = end {
      if byte == expected { end = nil }
    } else if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
      // A doubled one within a literal ends it and begins the next, which comes to the same.
      end = byte
    } else if byte == UInt8(ascii: "-"), previous == byte {
      end = UInt8(ascii: "\n")
    } else if byte == UInt8(ascii: "?") {
      count += 1
      numbered += "$\(count)".utf8
      continue
    }
    numbered.append(byte)
  }
  return String(decoding: numbered, as: UTF8.self)
}
