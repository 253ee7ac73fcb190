// Searching for names: a substring, ignoring case, in any script.
//
// A name is stored together with its folded form, in which the database looks for the folded query as a substring.
// Since that isn't a pattern, "%" and "_" aren't special. An index of trigrams narrows a search down to the names that
// contain every three characters in a row of the query. In SQLite, a shorter query is looked up by the trigrams that
// begin with it.

import CUTF8Proc
import Glibc

enum NameSearch {
  /// Folds a name so that names differing only in case, or in how they encode the same characters, become equal.
  ///
  /// Converts to upper case and then to lower case, which also equates "ß" with "ss" and "ς" with "σ". Uses no locale,
  /// so the result is the same on every machine. It's in Normalization Form C (Unicode Standard Annex #15), because "é"
  /// may be one code point or two (as in file names from a Mac). U+0000, which PostgreSQL's text can't contain, becomes
  /// U+FFFD.
  ///
  /// O(n): sorting a run of combining marks would take time that grows with its square, so a run of more than 30 is
  /// divided by U+034F (UAX #15 section 13, Stream-Safe Text Format).
  static func fold(_ name: String) -> String {
    let cased = name.uppercased().lowercased()
    guard cased.utf8.contains(where: { $0 >= 0x80 || $0 == 0 }) else { return cased }
    var (divided, run) = (String.UnicodeScalarView(), 0)
    for scalar in cased.unicodeScalars {
      let count = marks(in: scalar)
      run = count == 0 ? 0 : run + count
      if run > longestRun {
        divided.append("\u{034F}")
        run = count
      }
      divided.append(scalar == "\0" ? "\u{FFFD}" : scalar)
    }
    return composed(String(divided))
  }

  private static let longestRun = 30

  /// The number of marks that a character's decomposition begins with and that are sorted with those around them.
  private static func marks(in scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case ..<0x300: 0
    case 0x344, 0xF73, 0xF75, 0xF81: 2
    default: scalar.properties.canonicalCombiningClass == .notReordered ? 0 : 1
    }
  }

  /// Returns a text in Normalization Form C.
  private static func composed(_ text: String) -> String {
    var text = text
    var composed: UnsafeMutablePointer<UInt8>?
    let options = utf8proc_option_t(UTF8PROC_STABLE.rawValue | UTF8PROC_COMPOSE.rawValue)
    let count = text.withUTF8 { unsafe utf8proc_map($0.baseAddress, $0.count, &composed, options) }
    defer { unsafe free(composed) }
    precondition(count >= 0, "there is no memory for a text")
    return unsafe String(decoding: UnsafeBufferPointer(start: composed, count: count), as: UTF8.self)
  }

  /// Returns the folded texts, one per line.
  static func foldLines(_ texts: [String]) -> String {
    var lines: [UInt8] = []
    for (index, text) in texts.enumerated() {
      if index > 0 { lines.append(UInt8(ascii: "\n")) }
      lines.append(contentsOf: text.utf8.lazy.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 })
    }
    return fold(String(decoding: lines, as: UTF8.self))
  }

  /// Returns an FTS5 query for trigrams that every name containing the folded text has, or nil if the text is shorter.
  ///
  /// Takes every third trigram and the last: with all of them, a search in a million names costs up to five times as
  /// much, for reading long lists, and those that match by accident are few.
  static func trigrams(of folded: String) -> String? {
    let scalars = Array(folded.unicodeScalars)
    guard scalars.count >= 3 else { return nil }
    let last = scalars.count - 3
    let starts = Array(stride(from: 0, to: last, by: 3).prefix(trigramLimit)) + [last]
    return starts.map { start in
      // By code point: a quotation mark with an accent is one Character.
      let quoted = scalars[start..<start + 3].flatMap { $0 == "\"" ? [$0, $0] : [$0] }
      return "\"" + String(String.UnicodeScalarView(quoted)) + "\""
    }.joined(separator: " AND ")
  }

  /// Returns the range of the trigrams that begin with a text of one or two characters; the end isn't in it.
  static func trigrams(beginningWith folded: String) -> (first: String, end: String) {
    // As FTS5 reads these two.
    let scalars = folded.unicodeScalars.map { ["\u{FFFE}", "\u{FFFF}"].contains($0) ? "\u{FFFD}" : $0 }
    let first = String(String.UnicodeScalarView(scalars))
    return (first, first + "\u{10FFFF}\u{10FFFF}\u{10FFFF}")
  }

  /// More trigrams of a long query hardly narrow a search further.
  private static let trigramLimit = 16

  /// A text of one or two characters that begins fewer trigrams of names than these is looked up in the index. Of a
  /// million names among which the matches are spread evenly, reading the newest is as fast if one in 200 matches.
  static let rareLimit = 5000
}
