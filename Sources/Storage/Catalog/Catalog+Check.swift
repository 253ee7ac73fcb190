// Queries used only for checking.

extension Catalog {
  /// Returns the files with a recording's sound in other formats.
  func conversionFiles(of id: RecordingID) throws(StorageError) -> [String] {
    try read { db in
      try Self.intact(
        db.rows("SELECT * FROM conversions WHERE recording = ?", [id.text])
      ) { try ConversionRow(row: $0).conversion.key.name }
    }
  }

  /// Returns the number of unreadable rows per table, except recordings (see `unreadableRecordings`). Reads every row.
  func unreadableCounts() throws(StorageError) -> [(table: String, count: Int)] {
    try read { db in
      func count(_ table: String, _ make: (SQLRow) throws -> Void) throws -> (String, Int) {
        var count = 0
        try db.eachRow("SELECT * FROM \(table)") { row in
          do { try make(row) } catch { count += 1 }
          return true
        }
        return (table, count)
      }
      return [
        try count("jobs") { _ = try JobRow(row: $0) }, try count("uploads") { _ = try UploadRow(row: $0) },
        try count("conversions") { _ = try ConversionRow(row: $0) },
        try count("label_tracks") { _ = try LabelTrackRow(row: $0) },
        try count("noise_profiles") { _ = try KeptProfileRow(row: $0) },
      ].filter { $0.1 > 0 }
    }
  }
}
