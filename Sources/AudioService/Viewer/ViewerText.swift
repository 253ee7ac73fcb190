/// Prepares the page's files for sending by removing everything that only readers of the sources need.
///
/// It works line by line and keeps line ends, so that JavaScript's automatic semicolons stay as they are. It removes:
/// - comments `/* … */`, over any number of lines; the sources have none inside a string;
/// - lines that are a comment `// …`, and lines left empty;
/// - indentation. No string in the sources spans several lines.
enum ViewerText {
  /// Returns `text` without comments and indentation; every line ends with a line feed.
  ///
  /// - Parameters:
  /// UTF-8 in lines that end with a line feed.
  /// False for HTML, where `/*` and `//` mean something else.
  static func compact(_ text: [UInt8], hasComments: Bool) -> [UInt8] {
    var compact: [UInt8] = []
    compact.reserveCapacity(text.count)
    var isInComment = false
    for line in text.split(separator: UInt8(ascii: "\n")) {
      let rest = hasComments ? withoutComments(line, &isInComment) : line[...]
      let kept = rest.drop { $0 == UInt8(ascii: " ") }
      if kept.isEmpty || hasComments && kept.starts(with: "//".utf8) { continue }
      compact += kept
      compact.append(UInt8(ascii: "\n"))
    }
    return compact
  }

  /// Returns the parts of a line outside comments `/* … */`. A space after such a comment is removed with it.
  private static func withoutComments(_ line: ArraySlice<UInt8>, _ isInComment: inout Bool) -> ArraySlice<UInt8> {
    var kept: ArraySlice<UInt8> = []
    var rest = line
    while let byte = rest.first {
      if isInComment {
        isInComment = !rest.starts(with: "*/".utf8)
        rest = rest.dropFirst(isInComment ? 1 : 2)
        if !isInComment, rest.first == UInt8(ascii: " ") { rest = rest.dropFirst() }
      } else if rest.starts(with: "/*".utf8) {
        isInComment = true
        rest = rest.dropFirst(2)
      } else {
        kept.append(byte)
        rest = rest.dropFirst()
      }
    }
    return kept
  }
}
