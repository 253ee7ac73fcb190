extension Catalog {
  /// Deletes at most `limit` recordings created before `instant`, oldest first, except those that an unfinished job
  /// reads or produces, and returns which. Their finished jobs stay. The caller must call `MediaStore.remove` for
  /// each. With `tenant`, deletes only recordings of that tenant; otherwise those of all tenants but `others`.
  package func deleteRecordings(
    createdBefore instant: Timestamp, limit: Int, of tenant: Tenant? = nil, except others: Set<Tenant> = []
  ) throws(StorageError) -> [Owned<Recording>] {
    let names = (tenant.map { [$0] } ?? Array(others)).map(\.name)
    let isOneOf = "IN (\(names.map { _ in "?" }.joined(separator: ", ")))"
    let choice = names.isEmpty ? "" : " AND tenant \(tenant == nil ? "NOT " : "")\(isOneOf)"
    // IDs begin with the millisecond of their creation, which is later than `created_at` only if the clock was set back
    // in between. So with the primary key, only old recordings and those of a day are scanned.
    return try write(.statementLocks) { db in
      let isIdle = """
        NOT EXISTS (
          SELECT 1 FROM jobs
          WHERE (recording = recordings.id OR output = recordings.id) AND state IN ('queued', 'running'))
        """
      // Several nodes may do this at once: each takes recordings that no other has locked.
      let old = try db.rows(
        """
        SELECT id FROM recordings WHERE id < ? AND created_at < ?\(choice) AND \(isIdle)
        ORDER BY id LIMIT ?\(db.dialect.skippingLocked)
        """, [Self.firstID(madeAt: instant + 86_400), instant.milliseconds] + names + [max(0, limit)])
      // A job may have been inserted before the lock was taken, but not after.
      let idle = try old.compactMap { row -> Owned<Recording>? in
        let row = try db.row("SELECT id, tenant FROM recordings WHERE id = ? AND \(isIdle)", [row["id"]])
        guard let row, let id = RecordingID(try value(row, "id")) else { return nil }
        return Owned(id, of: Tenant(stored: try value(row, "tenant")))
      }
      try erase(idle, at: now(db), db)
      return idle
    }
  }

  /// Returns a text that precedes all IDs made at `instant` or later: 48 bits of milliseconds (RFC 9562 §5.7).
  private static func firstID(madeAt instant: Timestamp) -> String {
    let digits = String(max(0, instant.milliseconds), radix: 16)
    let padded = String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    return padded.prefix(8) + "-" + padded.dropFirst(8)
  }
}
