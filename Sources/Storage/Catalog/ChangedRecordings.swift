import GRDB
import Synchronization

// @unchecked Sendable: all state except the counts, which are atomic, is accessed only on the catalog's writer queue,
// where GRDB calls observers.

/// Collects the recordings and jobs that a transaction inserts, changes or removes, with any statement, and counts the
/// changes of each recording.
final class ChangedRecordings: TransactionObserver, @unchecked Sendable {
  private var rows: Set<Int64> = []
  private var removals: Set<Int64> = []
  private var jobs: Set<Int64> = []
  /// The recordings that the transaction deletes, with their tenants. Other removals are those of uploads.
  private var owners: [RecordingID: Tenant] = [:]
  private var leavesTraces = false

  /// The tables with what clients made. A deleted row is gone from the catalog, but not from the disk (see
  /// `Catalog.eraseTraces`).
  private static let tracedTables: Set<String> = [
    RecordingRow.databaseTableName, LabelTrackRow.databaseTableName, "label_chunks", KeptProfileRow.databaseTableName,
    UploadRow.databaseTableName,
  ]

  /// Recordings share counts: a count that grows needlessly only causes another read.
  private let counts = (0..<1024).map { _ in ChangeCount() }

  func observes(eventsOfKind kind: DatabaseEventKind) -> Bool {
    if case .delete(let table) = kind, Self.tracedTables.contains(table) { return true }
    return [RecordingRow.databaseTableName, JobRow.databaseTableName, "removals"].contains(kind.tableName)
  }

  func databaseDidChange(with event: DatabaseEvent) {
    let isDeletion = event.kind == .delete
    if isDeletion, Self.tracedTables.contains(event.tableName) { leavesTraces = true }
    switch event.tableName {
    case RecordingRow.databaseTableName: if !isDeletion { rows.insert(event.rowID) }
    case JobRow.databaseTableName: if !isDeletion { jobs.insert(event.rowID) }
    case "removals": if !isDeletion { removals.insert(event.rowID) }
    default: break
    }
  }

  func databaseDidCommit(_ db: Database) {}

  func databaseDidRollback(_ db: Database) { forget() }

  private func forget() { (rows, removals, jobs, owners, leavesTraces) = ([], [], [], [:], false) }

  /// Notes that this transaction deletes a recording of a tenant. Call it on the writer queue.
  func note(owner: Tenant, of id: RecordingID) { owners[id] = owner }

  /// Counts the recordings that changed since the last call and returns all changes. Call it on the writer queue after
  /// the commit. Doesn't throw, because an unreadable row was committed nevertheless.
  func take(_ db: Database) -> CatalogChanges {
    defer { forget() }
    let changed: [Owned<Recording>] = rows.compactMap { owned("recordings", $0, db) }
    let removed: [RecordingID] = removals.compactMap { removal($0, db) }
    for id in changed.map(\.id) + removed { count(of: id).value.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    return CatalogChanges(
      recordings: changed, deleted: removed.compactMap { id in owners[id].map { Owned(id, of: $0) } },
      jobs: jobs.compactMap { owned("jobs", $0, db) }, leavesTraces: leavesTraces)
  }

  /// The number of changes to a recording, together with those that share its count.
  func changeCount(of id: RecordingID) -> UInt64 { count(of: id).value.load(ordering: .sequentiallyConsistent) }

  private func owned<Entity>(_ table: String, _ row: Int64, _ db: Database) -> Owned<Entity>? {
    let sql = "SELECT id, tenant FROM \(table) WHERE rowid = ?"
    guard let found = try? Row.fetchOne(db.cachedStatement(sql: sql), arguments: [row]),
      let text: String = try? value(found, "id"), let id = Identifier<Entity>(text), let owner = try? tenant(found)
    else { return nil }
    return Owned(id, of: owner)
  }

  private func removal(_ row: Int64, _ db: Database) -> RecordingID? {
    let statement = try? db.cachedStatement(sql: "SELECT id FROM removals WHERE rowid = ?")
    let text = statement.flatMap { try? String.fetchOne($0, arguments: [row]) }
    return text.flatMap { RecordingID($0) }
  }

  private func count(of id: RecordingID) -> ChangeCount { counts[id.share(of: counts.count)] }
}

private final class ChangeCount: Sendable {
  let value = Atomic<UInt64>(0)
}
