import HTTP

/// A recording's display name: at most 255 bytes, without invisible characters.
struct RecordingName {
  let text: String

  private static let byteLimit = 255

  /// Creates a name from the one that a client gave. What browsers call a fake path, such as `C:\fakepath\`, is
  /// removed; other slashes may belong to a title. If nothing usable is left, the name is `recording.EXT`.
  init(_ given: String?, extension ending: String) {
    let fakePath = "c:\\fakepath\\"
    let given = given ?? ""
    let isFake = given.unicodeScalars.prefix(fakePath.utf8.count).elementsEqual(fakePath.unicodeScalars) {
      $0 == $1 || $0.properties.lowercaseMapping == String($1)
    }
    let name = Self.shown(isFake ? String(given.unicodeScalars.dropFirst(fakePath.utf8.count)) : given)
    let hasText = name.unicodeScalars.contains { !Self.isSlash($0) && $0 != "." }
    text = hasText ? name : "recording.\(ending)"
  }

  /// Creates a name from typed text, which isn't a path. nil if it has no visible characters.
  init?(typed: String) {
    text = Self.shown(typed)
    guard !text.isEmpty else { return nil }
  }

  /// Returns the name of a file for a recording's name: never a path, and with the format's extension, because a file
  /// that is sound and a page or a program at the same time must not be opened as one.
  static func file(_ name: String, extension ending: String) -> String {
    let flat = String(String.UnicodeScalarView(name.unicodeScalars.map { isSlash($0) ? "_" : $0 }))
    let usual = RecordingName(flat, extension: ending).text
    guard !usual.lowercased().hasSuffix(".\(ending)") else { return usual }
    return RecordingName("\(stem(of: usual)).\(ending)", extension: ending).text
  }

  /// The name without its extension, if it has one: a dot and up to eight letters and digits, not only digits.
  private static func stem(of name: String) -> Substring {
    guard let dot = name.unicodeScalars.lastIndex(of: "."), dot != name.startIndex else { return name[...] }
    let ending = name[name.unicodeScalars.index(after: dot)...]
    let isExtension =
      ending.utf8.count <= 8 && ending.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
      && ending.contains { $0.isLetter }
    return isExtension ? name[..<dot] : name[...]
  }

  private static func isSlash(_ scalar: Unicode.Scalar) -> Bool { scalar == "/" || scalar == "\\" }

  /// Removes control characters, and formatting characters, which can reverse a name or hide text in it. Keeps the
  /// joiners that emoji and scripts need and the tags of a flag (UTS #51, ED-14a: England's is U+1F3F4 and five
  /// letters).
  private static func shown(_ text: String) -> String {
    var shown = String.UnicodeScalarView()
    var isFlag = false
    for scalar in text.unicodeScalars {
      isFlag = scalar.value == 0x1F3F4 || isFlag && (0xE0020...0xE007F).contains(scalar.value)
      if isFlag || isShown(scalar) { shown.append(scalar) }
    }
    let name = String(shown).trimmed
    return name.utf8.count > byteLimit ? shortened(name) : name
  }

  private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: false
    case .format: scalar.value == 0x200C || scalar.value == 0x200D
    default: true
    }
  }

  /// Returns the name of a result made from `source`, such as "interview (denoised).wav".
  static func derived(from source: String, label: String, extension ending: String) -> String {
    let tail = " (\(label)).\(ending)"
    return shown(cut(stem(of: source), to: byteLimit - tail.utf8.count) + tail)
  }

  /// Shortens the name before its extension, if it has one worth keeping.
  private static func shortened(_ name: String) -> String {
    guard let dot = name.unicodeScalars.lastIndex(of: "."), name[dot...].utf8.count <= 16 else {
      return cut(name[...], to: byteLimit)
    }
    return cut(name[..<dot], to: byteLimit - name[dot...].utf8.count) + name[dot...]
  }

  /// Returns at most `limit` bytes of the text, in whole characters. From the start on, because finding where the last
  /// character begins takes as long as the text is: flags are pairs of letters.
  private static func cut(_ text: Substring, to limit: Int) -> String {
    guard text.utf8.count > limit else { return String(text) }
    var (end, count) = (text.startIndex, 0)
    for character in text {
      count += character.utf8.count
      guard count <= limit else { break }
      end = text.index(end, offsetBy: 1)
    }
    return String(text[..<end])
  }
}

extension String {
  /// The string without leading and trailing white space.
  fileprivate var trimmed: String {
    func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }
    var rest = unicodeScalars[...]
    while rest.first.map(isBlank) == true { rest.removeFirst() }
    while rest.last.map(isBlank) == true { rest.removeLast() }
    return String(rest)
  }
}

extension JSONMembers {
  /// The member `name`, in the form in which it's stored.
  func recordingName() throws -> String? {
    guard let given = try string("name", upTo: 255) else { return nil }
    guard let name = RecordingName(typed: given) else { throw invalid("name", .visibleText) }
    return name.text
  }
}
