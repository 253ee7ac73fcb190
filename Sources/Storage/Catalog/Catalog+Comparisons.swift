// When each recording's file was last compared with its SHA-256. Until then, its creation counts: the SHA-256 was
// computed from what was written. Nothing that readers see depends on it, so these calls count as no change of a
// recording.

extension Catalog {
  /// Returns at most `limit` recordings whose files were last compared before `instant`, the longest ago first.
  /// O(recordings).
  package func recordings(comparedBefore instant: Timestamp, limit: Int) throws(StorageError) -> [Recording] {
    try read { db in
      try db.rows(
        """
        SELECT * FROM recordings WHERE sha256 IS NOT NULL AND COALESCE(compared_at, created_at) < ?
        ORDER BY COALESCE(compared_at, created_at) LIMIT ?
        """, [instant.milliseconds, limit]
      ).compactMap { try? RecordingRow(row: $0).recording }
    }
  }

  /// Returns a recording if its file was last compared before `instant`.
  package func recording(_ id: RecordingID, comparedBefore instant: Timestamp) throws(StorageError) -> Recording? {
    try read { db in
      try db.row(
        "SELECT * FROM recordings WHERE id = ? AND sha256 IS NOT NULL AND COALESCE(compared_at, created_at) < ?",
        [id.text, instant.milliseconds]
      ).map { try RecordingRow(row: $0).recording }
    }
  }

  /// Notes that a recording's file was compared.
  package func note(comparisonOf id: RecordingID, at time: Timestamp) throws(StorageError) {
    _ = try engine.write(.statementLocks) {
      try CatalogTransaction($0).run(
        "UPDATE recordings SET compared_at = ? WHERE id = ?", [time.milliseconds, id.text])
    }
  }

  /// Returns the number of recordings with a warning of that code. O(recordings).
  package func count(withWarning code: String) throws(StorageError) -> Int {
    try read { db in
      try db.first("SELECT count(*) FROM recordings WHERE warnings LIKE ?", ["%\"\(code)\"%"], as: Int.self) ?? 0
    }
  }
}
