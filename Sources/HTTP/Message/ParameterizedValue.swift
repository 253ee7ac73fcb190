// value *( ";" name "=" ( token | quoted-string ) )                 (RFC 9110 §5.6.6; RFC 6266; RFC 8187)
//
// In a quoted string, a backslash escapes only a quote or a backslash: Internet Explorer and some uploaders send
// `C:\sound.wav` unescaped. Browsers encode a quote as %22 (HTML, "multipart/form-data encoding"), which is
// decoded in file names.

/// A field value with parameters, as in `Content-Type` and `Content-Disposition`.
package struct ParameterizedValue: Sendable, Equatable {
  /// The text before the first semicolon.
  package let value: String
  /// The parameters, with names in lower case and values without quotes.
  package let parameters: [QueryItem]

  /// Fails if the text doesn't follow the grammar.
  package init?(_ text: String) {
    var rest = Array(text.utf8)[...]
    let end = rest.firstIndex(of: ASCII.semicolon) ?? rest.endIndex
    value = String(decoding: rest[..<end].trimmingBlanks(), as: UTF8.self)
    rest = rest[end...]
    var parameters: [QueryItem] = []
    while !rest.isEmpty {
      rest = rest.dropFirst().drop(while: ASCII.isBlank)
      if rest.isEmpty { break }
      if rest.first == ASCII.semicolon { continue }
      let name = rest.prefix(while: ASCII.isTokenByte)
      rest = rest[name.endIndex...]
      guard !name.isEmpty, rest.first == UInt8(ascii: "=") else { return nil }
      rest = rest.dropFirst()
      guard let value = Self.takeValue(&rest) else { return nil }
      rest = rest.drop(while: ASCII.isBlank)
      guard rest.isEmpty || rest.first == ASCII.semicolon else { return nil }
      parameters.append(
        QueryItem(name: String(decoding: name.map(ASCII.lowercased), as: UTF8.self), value: value))
    }
    self.parameters = parameters
  }

  /// The first parameter with this name. Pass the name in lower case.
  package subscript(_ name: String) -> String? { parameters.first { $0.name == name }?.value }

  /// The value of `filename*` (RFC 8187, UTF-8 only) or else `filename`, without any folders.
  package var filename: String? {
    let plain = self["filename"]?.split(separator: "%22", omittingEmptySubsequences: false).joined(separator: "\"")
    guard let name = self["filename*"].flatMap(Self.decodeExtended) ?? plain else { return nil }
    // Searches bytes: a slash followed by a combining character is a different Character but still a slash to the
    // system.
    let bytes = Array(name.utf8)
    let slash = bytes.lastIndex { $0 == ASCII.slash || $0 == ASCII.backslash }
    return String(decoding: bytes[(slash.map { $0 + 1 } ?? 0)...], as: UTF8.self)
  }

  private static func takeValue(_ rest: inout ArraySlice<UInt8>) -> String? {
    guard rest.first == UInt8(ascii: "\"") else {
      let token = rest.prefix { $0 > 0x20 && $0 != ASCII.semicolon }
      rest = rest[token.endIndex...]
      return token.isEmpty ? nil : String(decoding: token, as: UTF8.self)
    }
    var value: [UInt8] = []
    var index = rest.startIndex + 1
    while index < rest.endIndex {
      let byte = rest[index]
      if byte == UInt8(ascii: "\"") {
        rest = rest[(index + 1)...]
        return String(decoding: value, as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\"), index + 1 < rest.endIndex, "\"\\".utf8.contains(rest[index + 1]) { index += 1 }
      value.append(rest[index])
      index += 1
    }
    return nil
  }

  /// Decodes `UTF-8'language'percent-encoded`.
  private static func decodeExtended(_ text: String) -> String? {
    let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].equalsIgnoringCase("UTF-8") else { return nil }
    return ASCII.percentDecoded(Array(parts[2].utf8)[...])
  }
}
