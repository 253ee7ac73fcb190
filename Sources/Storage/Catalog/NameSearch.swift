// Searching for names: a substring, ignoring case, in any script.
//
// A name is stored together with its folded form, in which the database looks for the folded query as a substring.
// Since that isn't a pattern, "%" and "_" aren't special. An index of trigrams narrows a search down to the names that
// contain every three characters in a row of the query. In SQLite, a shorter query is looked up by the trigrams that
// begin with it.

import Foundation

enum NameSearch {
  /// Folds a name so that names differing only in case, or in how they encode the same characters, become equal.
  ///
  /// Converts to upper case and then to lower case, which also equates "ß" with "ss" and "ς" with "σ". Uses no locale,
  /// so the result is the same on every machine. It's in Normalization Form C (Unicode Standard Annex #15), because "é"
  /// may be one code point or two (as in file names from a Mac). U+0000, which PostgreSQL's text can't contain, becomes
  /// U+FFFD.
  static func fold(_ name: String) -> String {
    var folded = name.uppercased().lowercased()
    if folded.utf8.contains(0) { folded = folded.replacing("\0", with: "\u{FFFD}") }
    return folded.utf8.allSatisfy { $0 < 0x80 } ? folded : folded.precomposedStringWithCanonicalMapping
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
