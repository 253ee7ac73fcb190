// How names are searched: a substring, whatever its case, in any script.
//
// A name is stored beside its folded form, and SQLite's instr() looks for the folded query in it: no pattern, so "%"
// and "_" are letters like any other. That compares bytes, and "é" may be one code point or two (file names from a Mac
// have two). So where the query is not ASCII, names that instr() passes over are compared once more, by Character,
// which Swift compares by canonical equivalence.

import GRDB

enum NameSearch {
  /// The form in which names that differ in case only are equal.
  ///
  /// Up and then down, which also joins "ß" with "ss" and "ς" with "σ"; without a locale, so equal on every machine.
  static func fold(_ name: String) -> String {
    name.uppercased().lowercased()
  }

  /// `canonically_contains(folded name, folded query)` for SQL.
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
