// Searching for names (see NameSearch), which needs an index of trigrams in either database.

extension SQLDialect {
  /// Adds the conditions under which a recording's name contains a folded text, and is older than `before`. Returns the
  /// table to select recordings from and the column that sorts them. Throws a `StorageError`.
  func search(
    _ folded: String, before: RecordingID?, _ filter: inout Filter, _ db: CatalogTransaction
  ) throws -> (table: String, order: String) {
    filter.add(contains("recordings.name_folded"), folded)
    switch self {
    case .sqlite:
      let last = before?.greatestNumber ?? .max
      if let trigrams = NameSearch.trigrams(of: folded) {
        // Newest first out of the index, so that a common name is found as fast as a rare one.
        filter.add("recording_names MATCH ?", trigrams)
        filter.add("recording_names.rowid <= ?", last)
        return ("recording_names CROSS JOIN recordings ON number = recording_names.rowid", "recording_names.rowid")
      }
      let (first, end) = NameSearch.trigrams(beginningWith: folded)
      let rows = "FROM recording_names_trigrams WHERE term >= ? AND term < ?"
      let count = try db.first(
        "SELECT count(*) FROM (SELECT 1 \(rows) LIMIT ?)", [first, end, NameSearch.rareLimit], as: Int.self)
      // Of a common text, the newest names contain enough.
      guard let count, count < NameSearch.rareLimit else { return ("recordings", "id") }
      filter.add("number IN (SELECT doc \(rows))", first, end)
      filter.add("number <= ?", last)
      // Without it, SQLite may take an index of tenants, and read all of one's names.
      return ("recordings INDEXED BY recordings_by_number", "number")
    case .postgres:
      // The index of trigrams (pg_trgm) serves LIKE, if the text has three characters.
      if folded.unicodeScalars.count >= 3 { filter.add("recordings.name_folded LIKE ?", Self.pattern(folded)) }
      return ("recordings", "id")
    }
  }

  /// Returns a pattern of LIKE for texts that contain `text`.
  private static func pattern(_ text: String) -> String {
    var pattern = "%"
    for scalar in text.unicodeScalars {
      if ["%", "_", "\\"].contains(scalar) { pattern += "\\" }
      pattern.unicodeScalars.append(scalar)
    }
    return pattern + "%"
  }
}
