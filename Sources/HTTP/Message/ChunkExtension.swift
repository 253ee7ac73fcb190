// chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )          (RFC 9112 §7.1.1)
//
// The server ignores extensions, but where one ends decides where the data begins. So anything that another reader
// could take for the end of the line, such as a bare CR or an empty name, is an error rather than skipped.

/// Validates the extensions of one chunk, byte by byte, up to the CR.
struct ChunkExtension {
  private enum Place { case beforeSemicolon, beforeName, name, behindName, beforeValue, token, quoted, escaped }

  private var place: Place

  /// Starts with the byte after the size, a semicolon or a blank. Fails for any other.
  init?(_ first: UInt8) {
    if first == ASCII.semicolon {
      place = .beforeName
    } else if ASCII.isBlank(first) {
      place = .beforeSemicolon
    } else {
      return nil
    }
  }

  /// Whether the line may end here. Never after a blank: the grammar allows no padding there.
  private(set) var mayEnd = false

  /// Handles one byte other than the line's end. Returns false if it isn't allowed here.
  mutating func take(_ byte: UInt8) -> Bool {
    guard let next = next(byte) else { return false }
    mayEnd = next == .name || next == .token || place == .quoted && next == .beforeSemicolon
    place = next
    return true
  }

  private func next(_ byte: UInt8) -> Place? {
    let isBlank = ASCII.isBlank(byte)
    switch place {
    case .beforeSemicolon: return isBlank ? place : byte == ASCII.semicolon ? .beforeName : nil
    case .beforeName: return isBlank ? place : ASCII.isTokenByte(byte) ? .name : nil
    case .name, .behindName:
      if place == .name, ASCII.isTokenByte(byte) { return .name }
      return isBlank ? .behindName : byte == ASCII.equals ? .beforeValue : byte == ASCII.semicolon ? .beforeName : nil
    case .beforeValue:
      return isBlank ? place : byte == ASCII.quote ? .quoted : ASCII.isTokenByte(byte) ? .token : nil
    case .token:
      if ASCII.isTokenByte(byte) { return .token }
      return isBlank ? .beforeSemicolon : byte == ASCII.semicolon ? .beforeName : nil
    case .quoted:
      if byte == ASCII.quote { return .beforeSemicolon }
      return byte == ASCII.backslash ? .escaped : ASCII.isFieldValueByte(byte) ? .quoted : nil
    case .escaped: return ASCII.isFieldValueByte(byte) ? .quoted : nil
    }
  }
}
