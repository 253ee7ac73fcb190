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
  ///
  /// O(n): Foundation's normalization takes time that grows with the square of a text's length and of a run of
  /// combining marks (a MiB of "é" as two code points 13 s, 64 KiB of alternating marks 2 s), so it gets pieces. A run
  /// of more than 30 marks is divided by U+034F (UAX #15 section 13, Stream-Safe Text Format).
  static func fold(_ name: String) -> String {
    let cased = name.uppercased().lowercased()
    guard cased.utf8.contains(where: { $0 >= 0x80 || $0 == 0 }) else { return cased }
    var (folded, piece, length, run) = ("", String.UnicodeScalarView(), 0, 0)
    folded.reserveCapacity(cased.utf8.count)
    func flush() {
      folded += String(piece).precomposedStringWithCanonicalMapping
      (piece, length) = (String.UnicodeScalarView(), 0)
    }
    for scalar in cased.unicodeScalars {
      let count = marks(in: scalar)
      run = count == 0 ? 0 : run + count
      if run == 0 || run > longestRun, length >= pieceLength { flush() }
      if run > longestRun {
        piece.append("\u{034F}")
        run = count
      }
      piece.append(scalar == "\0" ? "\u{FFFD}" : scalar)
      length += 1
    }
    flush()
    return folded
  }

  /// Code points, after which a piece ends before the next character that can't combine with it.
  private static let pieceLength = 256
  private static let longestRun = 30

  /// The code points that a character's decomposition begins with and that may combine with what precedes them: marks,
  /// and vowels and final consonants of Hangul and Kirat Rai. Four marks consist of two.
  private static func marks(in scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case ..<0x300: return 0
    case 0x344, 0xF73, 0xF75, 0xF81: return 2
    case 0x1160...0x11FF, 0x16D40...0x16D7F: return 1
    default:
      let category = scalar.properties.generalCategory
      return category == .nonspacingMark || category == .spacingMark || category == .enclosingMark ? 1 : 0
    }
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
