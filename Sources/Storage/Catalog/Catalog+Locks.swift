// How writing calls are kept apart on a database that runs them side by side. SQLite has one writer at a time; there,
// all of this costs nothing.
//
// Calls that change jobs or recordings are `.statementLocks` (READ COMMITTED): serializable, they would fail and be
// repeated whenever two of them add to the same tenant's row of `usage` or `job_seconds`, which nearly all do. They
// hold instead what they rely on, in this order, so that no two wait for each other:
//
//   1. the rows of recordings, by ID     a job's source and output, before the job changes; the source of a new job
//   2. the row of the job                `locked`
//   3. counters                          `usage`, then, at the end, `job_seconds`: added to by triggers
//   4. the name of a client              when its jobs are counted (Catalog+JobLimits)
//
//   two transitions of one job           the second waits for the row and reads it as the first left it
//   a new job, its recording deleted     the job holds the recording's row (`held`); the deletion waits, and its next
//                                        statement sees the job and cancels it. Or the job waits, and finds no
//                                        recording
//   two jobs for the same work           `sharedJob` locks the recording's row before it looks
//   two changes of one recording         read with the lock, so that none writes back what another has changed
//   a tenant's limits                    checked after the insertion, whose trigger has locked the tenant's row
//   a client's limits on jobs            counted under the lock of its name, after the insertion, or before the claim
//   new labels, a profile                lock the recording's row, or hold it
//
// Serializable calls (changes of labels, profiles, the number of uploads) don't see the reads of those above. They hold
// or change the same rows, which PostgreSQL refuses if a row was changed since they began; then they are repeated.

extension Catalog {
  /// Returns the time that decides about leases: by the database's clock, so that a node whose own is wrong neither
  /// loses a lease nor takes one that another holds.
  func now(_ db: CatalogTransaction) throws -> Timestamp {
    if let clock = holder.clock { return clock() }
    guard let clock = db.dialect.clock else { return .now }
    let asked = ContinuousClock.now
    let now = Timestamp(milliseconds: try value(db.rows("SELECT \(clock) AS now")[0], "now"))
    note(clock: now, after: ContinuousClock.now - asked)
    return now
  }

  /// Compares this machine's clock with the database's, if that has one.
  package func compareClocks() throws(StorageError) { try read { _ = try now($0) } }

  /// Locks a job and the recordings that its transitions may change, and returns the job and the time, which is not
  /// later than the end of the wait for the lock. nil if there is no such job.
  func locked(_ id: JobID, _ db: CatalogTransaction) throws -> (job: Job, now: Timestamp)? {
    if !db.dialect.changingRows.isEmpty {
      _ = try db.rows(
        """
        SELECT id FROM recordings WHERE id IN (
          SELECT recording FROM jobs WHERE id = ? UNION ALL SELECT output FROM jobs WHERE id = ?)
        ORDER BY id\(db.dialect.changingRows)
        """, [id.text, id.text])
    }
    return try locked(id, by: db.dialect.changingRows, db)
  }

  /// Locks a job's row. `lock` is one of the dialect's ends of a SELECT.
  func locked(_ id: JobID, by lock: String, _ db: CatalogTransaction) throws -> (job: Job, now: Timestamp)? {
    let clock = holder.clock == nil ? db.dialect.clock : nil
    let columns = clock.map { "*, \($0) AS now" } ?? "*"
    guard let row = try db.row("SELECT \(columns) FROM jobs WHERE id = ?\(lock)", [id.text]) else { return nil }
    let job = try JobRow(row: row).job
    return (job, clock == nil ? holder.clock?() ?? .now : Timestamp(milliseconds: try value(row, "now")))
  }

  /// Returns a recording that can't be changed or deleted until the end of the transaction, or nil.
  static func held(_ id: RecordingID, _ db: CatalogTransaction) throws -> Recording? {
    try recording(id, by: db.dialect.holdingRows, db)
  }

  /// Returns a recording that the transaction is about to change, or nil.
  static func locked(_ id: RecordingID, _ db: CatalogTransaction) throws -> Recording? {
    try recording(id, by: db.dialect.changingRows, db)
  }

  private static func recording(_ id: RecordingID, by lock: String, _ db: CatalogTransaction) throws -> Recording? {
    try db.row("SELECT * FROM recordings WHERE id = ?\(lock)", [id.text]).map(RecordingRow.init(row:))?.recording
  }
}
