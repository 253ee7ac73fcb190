/// A field line, `name ":" OWS value OWS`, in a head, a trailer, or a part of multipart content.
enum FieldLine {
  /// More bytes in a row that aren't ASCII are in no name, and a String of many combining marks takes time to compare or
  /// search that grows with the square of their number.
  private static let foreignLimit = 4096

  private static func longestForeignRun(_ bytes: Span<UInt8>) -> Int {
    var (run, longest) = (0, 0)
    for index in bytes.indices {
      run = bytes[index] < 0x80 ? 0 : run + 1
      longest = max(longest, run)
    }
    return longest
  }

  /// Validates a line and adds it to `fields`.
  static func parse(_ line: ArraySlice<UInt8>, into fields: inout FieldSection) throws(HTTPParseError) {
    let bytes = line.span
    guard !bytes.isEmpty, !ASCII.isBlank(bytes[0]) else { throw .malformed(.obsoleteFolding) }
    var colon = 0
    while colon < bytes.count, bytes[colon] != ASCII.colon {
      guard ASCII.isTokenByte(bytes[colon]) else { throw .malformed(.fieldName) }
      colon += 1
    }
    guard colon > 0, colon < bytes.count else { throw .malformed(.fieldName) }
    var allBits: UInt8 = 0
    for index in (colon + 1)..<bytes.count {
      guard ASCII.isFieldValueByte(bytes[index]) else { throw .malformed(.fieldValue) }
      allBits |= bytes[index]
    }
    if allBits >= 0x80, longestForeignRun(bytes) > foreignLimit { throw .malformed(.fieldValue) }
    let name = line.prefix(colon)
    fields.append(name, line[(name.endIndex + 1)...].trimmingBlanks())
  }
}
