// Searching for names (see NameSearch), which needs an index of trigrams in either database.

extension SQLDialect {
  /// Adds the conditions under which a recording's name contains a folded text, and is older than `before`. Returns the
  /// table to select recordings from and the column that sorts them.
  func search(_ folded: String, before: RecordingID?, _ filter: inout Filter) -> (table: String, order: String) {
    filter.add(contains("recordings.name_folded"), folded)
    switch self {
    case .sqlite:
      guard let trigrams = NameSearch.trigrams(of: folded) else { return ("recordings", "id") }
      // Newest first out of the index, so that a common name is found as fast as a rare one.
      filter.add("recording_names MATCH ?", trigrams)
      filter.add("recording_names.rowid <= ?", before?.greatestNumber ?? .max)
      return ("recording_names CROSS JOIN recordings ON number = recording_names.rowid", "recording_names.rowid")
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
