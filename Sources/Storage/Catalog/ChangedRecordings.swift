import GRDB

// @unchecked Sendable: all state is accessed only on the catalog's writer queue, where GRDB calls observers.

/// Collects the recordings that a transaction inserts or changes, by whatever statement.
final class ChangedRecordings: TransactionObserver, @unchecked Sendable {
  private var rows: Set<Int64> = []

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { kind.tableName == RecordingRow.databaseTableName }

  func databaseDidChange(with event: DatabaseEvent) {
    if event.kind != .delete { rows.insert(event.rowID) }
  }

  func databaseDidCommit(_ db: Database) {}

  func databaseDidRollback(_ db: Database) { rows = [] }

  /// Returns the recordings that were changed since the last call and still exist. Call it on the writer queue after
  /// the commit. Doesn't throw, because an unreadable row was committed nevertheless.
  func take(_ db: Database) -> [RecordingID] {
    guard !rows.isEmpty else { return [] }
    defer { rows = [] }
    return rows.compactMap { row in
      let text = try? String.fetchOne(
        db.cachedStatement(sql: "SELECT id FROM recordings WHERE rowid = ?"), arguments: [row])
      return text.flatMap(RecordingID.init)
    }
  }
}
