// Searching for names: a substring, ignoring case, in any script.
//
// A name is stored together with its folded form, in which SQLite's instr() looks for the folded query. Since that
// isn't a pattern, "%" and "_" aren't special. instr() compares bytes, but "é" may be one code point or two (as in file
// names from a Mac). So if the query isn't ASCII, names without a match are compared again by Character, which in Swift
// uses canonical equivalence.

import GRDB

enum NameSearch {
  /// Folds a name so that names differing only in case become equal.
  ///
  /// Converts to upper case and then to lower case, which also equates "ß" with "ss" and "ς" with "σ". Uses no locale,
  /// so the result is the same on every machine.
  static func fold(_ name: String) -> String {
    name.uppercased().lowercased()
  }

  /// The SQL function `canonically_contains(folded name, folded query)`.
  static let function = DatabaseFunction("canonically_contains", argumentCount: 2, pure: true) { values in
    guard let name = String.fromDatabaseValue(values[0]), let query = String.fromDatabaseValue(values[1]) else {
      return false
    }
    return canonicallyContains(name, query)
  }

  private static func canonicallyContains(_ name: String, _ query: String) -> Bool {
    if name.utf8.allSatisfy({ $0 < 0x80 }) { return false }
    let letters = Array(name)
    let wanted = Array(query)
    guard let first = wanted.first, letters.count >= wanted.count else { return false }
    return (0...letters.count - wanted.count).contains { start in
      letters[start] == first && letters[start...].starts(with: wanted)
    }
  }
}
