/// Text of the page as it is sent: a file of its own for whoever reads the sources, without what only readers need.
///
/// It goes by lines, so that a line keeps its end, and with it the semicolons that JavaScript puts in there:
/// - a comment `/* … */` goes, over any number of lines; the sources have none inside of a string;
/// - a line that is a comment `// …` goes, and so does what is empty then;
/// - what a line is indented by goes. No string of the sources goes over several lines.
enum ViewerText {
  /// `text` without comments and indentation, in lines that all end with a line feed.
  ///
  /// - Parameters:
  ///   - text: UTF-8, lines end with a line feed.
  ///   - hasComments: false for HTML, where `/*` and `//` stand for other things.
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

  /// What of a line is no part of a comment `/* … */`; the space after such a comment goes with it.
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
