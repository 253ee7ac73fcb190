// The modules of the page declare types and give reasons in comments, a quarter of their compressed bytes. Browsers get
// them without those that lines begin with:
//
//   // …        to the end of the line
//   /* … */     on one line or several
//
// Everything else stays, including every line break, so that errors name the lines of the sources. No line within a
// template literal begins like a comment.

/// A module or style sheet of the page.
struct PageSource {
  let bytes: [UInt8]

  /// The file as browsers get it.
  var withoutComments: [UInt8] {
    var result: [UInt8] = []
    var isInComment = false
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      if index > 0 { result.append(UInt8(ascii: "\n")) }
      result += Self.code(in: line, &isInComment)
    }
    return result
  }

  private static func code(in line: ArraySlice<UInt8>, _ isInComment: inout Bool) -> ArraySlice<UInt8> {
    var rest = line
    while true {
      if isInComment {
        guard let end = rest.indices.first(where: { rest[$0...].starts(with: "*/".utf8) }) else { return [] }
        rest = rest[(end + 2)...]
        isInComment = false
      }
      let text = rest.drop { $0 == UInt8(ascii: " ") }
      if text.starts(with: "//".utf8) { return [] }
      guard text.starts(with: "/*".utf8) else { return rest }
      rest = text.dropFirst(2)
      isInComment = true
    }
  }
}
