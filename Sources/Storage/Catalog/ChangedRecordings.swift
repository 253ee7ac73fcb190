import GRDB
import Synchronization

// @unchecked Sendable: all state except the counts, which are atomic, is accessed only on the catalog's writer queue,
// where GRDB calls observers.

/// Collects the recordings that a transaction inserts, changes or removes, with any statement, and counts the changes
/// of each.
final class ChangedRecordings: TransactionObserver, @unchecked Sendable {
  private var rows: Set<Int64> = []
  private var removals: Set<Int64> = []

  /// Recordings share counts: a count that grows needlessly only causes another read.
  private let counts = (0..<1024).map { _ in ChangeCount() }

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool {
    [RecordingRow.databaseTableName, "removals"].contains(kind.tableName)
  }

  func databaseDidChange(with event: DatabaseEvent) {
    guard event.kind != .delete else { return }
    if event.tableName == RecordingRow.databaseTableName {
      rows.insert(event.rowID)
    } else {
      removals.insert(event.rowID)
    }
  }

  func databaseDidCommit(_ db: Database) {}

  func databaseDidRollback(_ db: Database) { (rows, removals) = ([], []) }

  /// Counts what changed since the last call and returns the recordings that were inserted or changed and still exist.
  /// Call it on the writer queue after the commit. Doesn't throw, because an unreadable row was committed nevertheless.
  func take(_ db: Database) -> [RecordingID] {
    defer { (rows, removals) = ([], []) }
    let changed = rows.compactMap { id("SELECT id FROM recordings WHERE rowid = ?", $0, db) }
    let removed = removals.compactMap { id("SELECT id FROM removals WHERE rowid = ?", $0, db) }
    for id in changed + removed { count(of: id).value.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    return changed
  }

  /// The number of changes to a recording, together with those that share its count.
  func changeCount(of id: RecordingID) -> UInt64 { count(of: id).value.load(ordering: .sequentiallyConsistent) }

  private func id(_ sql: String, _ row: Int64, _ db: Database) -> RecordingID? {
    let text = try? String.fetchOne(db.cachedStatement(sql: sql), arguments: [row])
    return text.flatMap(RecordingID.init)
  }

  private func count(of id: RecordingID) -> ChangeCount { counts[id.share(of: counts.count)] }
}

private final class ChangeCount: Sendable {
  let value = Atomic<UInt64>(0)
}
