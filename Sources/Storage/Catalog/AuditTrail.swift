import Synchronization

// The audit log's outbox: the table `audit_lines`. The line of a change is inserted in the transaction that makes the
// change, and deleted once it is on disk in the audit log. So a line may be written twice after a crash, and none is
// missing. Each has an identifier of its own.
//
//   1. the change and its line  2. the line is written to the log, with what the response says  3. its row is deleted
//
// A row is due if its process can't be about to write it, ten minutes after its last transaction: any process may then
// take it, write it and delete it. Taking it makes it due again ten minutes later.

/// A line of the audit log in the catalog.
package struct AuditEntry: Sendable, Equatable {
  /// The identifier, which is also in the line.
  package let id: String
  /// JSON without a newline.
  package let line: String

  /// Returns a new identifier, which begins with the time.
  package static func newID() -> String { UUIDv7().text }

  /// Creates an entry from its parts.
  package init(id: String, line: String) { (self.id, self.line) = (id, line) }
}

/// The entries for the changes of one request, or of the service itself. Every transaction that changes something while
/// it is current inserts them; of several with the same identifier, the last one counts.
package final class AuditTrail: Sendable {
  /// The trail of the running code: kept by tasks, and by queues whose work is wrapped by `carrying`.
  @TaskLocal package static var current: AuditTrail?

  private let isDueAtOnce: Bool
  private let entries: @Sendable (CatalogChanges) -> [AuditEntry]
  private let hasCommitted = Atomic(false)
  private let isClosed = Atomic(false)

  /// Creates a trail. `isDueAtOnce` is whether any process may write the lines out at once, because nobody is about to.
  package init(isDueAtOnce: Bool = false, _ entries: @escaping @Sendable (CatalogChanges) -> [AuditEntry]) {
    (self.isDueAtOnce, self.entries) = (isDueAtOnce, entries)
  }

  /// Whether a transaction has inserted entries and was committed, or may have been.
  package var isCommitted: Bool { hasCommitted.load(ordering: .sequentiallyConsistent) }

  /// From now on, transactions insert nothing: the request has been answered.
  package func close() { isClosed.store(true, ordering: .relaxed) }

  /// Returns work that has the present trail on whichever thread it runs.
  package static func carrying(_ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    guard let trail = current else { return body }
    return { $current.withValue(trail, operation: body) }
  }

  /// Inserts the entries for what the transaction has changed. Returns false if that is nothing.
  func note(_ changes: CatalogChanges, at now: Timestamp, _ db: CatalogTransaction) throws -> Bool {
    guard db.hasChanged, !isClosed.load(ordering: .relaxed) else { return false }
    let due = isDueAtOnce ? now : now + Catalog.auditSeconds
    for entry in entries(changes) {
      try db.run(
        """
        INSERT INTO audit_lines (id, line, due) VALUES (?, ?, ?) ON CONFLICT (id)
          DO UPDATE SET line = excluded.line, due = excluded.due
        """, [entry.id, entry.line, due.milliseconds])
    }
    return true
  }

  /// Notes that a transaction with entries was committed, or may have been.
  func noteCommit() { hasCommitted.store(true, ordering: .sequentiallyConsistent) }
}

extension Catalog {
  /// How long a process that has taken a line has to write it, in seconds.
  static let auditSeconds = 600.0

  /// Takes at most `limit` lines that are due, or with `all` any, to be written to the audit log.
  package func takeAuditLines(all: Bool = false, limit: Int = 500) throws(StorageError) -> [AuditEntry] {
    try write(.statementLocks, isAudited: false) { db in
      let now = try now(db)
      let rows = try db.rows(
        """
        UPDATE audit_lines SET due = ? WHERE id IN (
          SELECT id FROM audit_lines WHERE due <= ? ORDER BY id LIMIT ?\(db.dialect.skippingLocked)
        ) RETURNING id, line
        """, [(now + Self.auditSeconds).milliseconds, all ? Int64.max : now.milliseconds, limit])
      return try rows.map { AuditEntry(id: try value($0, "id"), line: try value($0, "line")) }.sorted { $0.id < $1.id }
    }
  }

  /// Deletes lines that are in the audit log.
  package func forgetAuditLines(_ ids: [String]) throws(StorageError) {
    for start in stride(from: 0, to: ids.count, by: 500) {
      let some = Array(ids[start..<min(start + 500, ids.count)])
      try write(.statementLocks, isAudited: false) { db in
        let places = some.map { _ in "?" }.joined(separator: ", ")
        _ = try db.run("DELETE FROM audit_lines WHERE id IN (\(places))", some)
      }
    }
  }
}
