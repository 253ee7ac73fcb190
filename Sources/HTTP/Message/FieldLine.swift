/// A field line, `name ":" OWS value OWS`, in a head, a trailer, or a part of multipart content.
enum FieldLine {
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
    if allBits >= 0x80, bytes.hasLongMarkRun { throw .malformed(.fieldValue) }
    let name = line.prefix(colon)
    fields.append(name, line[(name.endIndex + 1)...].trimmingBlanks())
  }
}
