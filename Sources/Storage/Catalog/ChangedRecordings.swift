import GRDB

// @unchecked Sendable: all state is touched on the catalog's writer queue alone, where GRDB calls observers.

/// Collects which recordings a transaction has inserted or changed, whichever statement did.
final class ChangedRecordings: TransactionObserver, @unchecked Sendable {
  private var rows: Set<Int64> = []

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { kind.tableName == RecordingRow.databaseTableName }

  func databaseDidChange(with event: DatabaseEvent) {
    if event.kind != .delete { rows.insert(event.rowID) }
  }

  func databaseDidCommit(_ db: Database) {}

  func databaseDidRollback(_ db: Database) { rows = [] }

  /// The recordings that were changed since the last call and are still there. On the writer queue, after the commit:
  /// what can't be read here was committed all the same, so nothing is thrown.
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
