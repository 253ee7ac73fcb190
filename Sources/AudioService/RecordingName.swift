/// A recording's name for people: the last part of a path, without control characters, at most 255 bytes.
struct RecordingName {
  let text: String

  private static let byteLimit = 255

  /// `given` is whatever a client said; nothing usable becomes `recording.EXT`.
  init(_ given: String?, extension ending: String) {
    let last = (given ?? "").split { $0 == "/" || $0 == "\\" }.last ?? ""
    let visible = last.unicodeScalars.filter { Self.isShown($0) }
    var name = String(String.UnicodeScalarView(visible)).trimmed
    if name.utf8.count > Self.byteLimit { name = Self.shortened(name) }
    text = name.isEmpty || name == "." || name == ".." ? "recording.\(ending)" : name
  }

  /// Controls are not; nor is formatting, which can turn a name round, but for the joiners that emoji and scripts need.
  private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: false
    case .format: scalar.value == 0x200C || scalar.value == 0x200D
    default: true
    }
  }

  /// What a result made from `source` is called: "interview (denoised).wav".
  static func derived(from source: String, label: String, extension ending: String) -> String {
    let stem = source.lastIndex(of: ".").map { $0 == source.startIndex ? source[...] : source[..<$0] } ?? source[...]
    let tail = " (\(label)).\(ending)"
    return RecordingName(cut(stem, to: byteLimit - tail.utf8.count) + tail, extension: ending).text
  }

  /// Cut before the extension, where there is one worth keeping.
  private static func shortened(_ name: String) -> String {
    guard let dot = name.lastIndex(of: "."), name[dot...].utf8.count <= 16 else { return cut(name[...], to: byteLimit) }
    return cut(name[..<dot], to: byteLimit - name[dot...].utf8.count) + name[dot...]
  }

  /// At most `limit` bytes, whole characters.
  private static func cut(_ text: Substring, to limit: Int) -> String {
    var rest = text
    while rest.utf8.count > limit { rest.removeLast() }
    return String(rest)
  }
}

extension String {
  /// Without white space at either end.
  fileprivate var trimmed: String {
    var rest = self[...]
    while rest.first?.isWhitespace == true { rest.removeFirst() }
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return String(rest)
  }
}
