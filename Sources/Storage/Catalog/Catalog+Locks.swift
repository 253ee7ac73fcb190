// How writing calls are kept apart on a database that runs them side by side. SQLite has one writer at a time; there,
// all of this costs nothing.
//
// Calls that change jobs or recordings are `.statementLocks` (READ COMMITTED): serializable, they would fail and be
// repeated whenever two of them add to the same tenant's row of `usage` or `job_seconds`, which nearly all do. They
// hold instead what they rely on, in this order, so that no two wait for each other in a circle:
//
//   1. recordings and unfinished jobs    in the order in which they are made: a job's source, the job, the recording
//                                        that it makes, the jobs that read that, and so on; the jobs of one recording
//                                        by ID. Whoever begins in the middle, such as the deletion of what a job
//                                        makes, begins with the job
//   2. what says something of them       noise profiles learned from a recording; the names under which conversions and
//                                        a tenant's profiles are counted
//   3. counters                          `usage`, then, at the end, `job_seconds`: added to by triggers. A transaction
//                                        that deletes recordings of several tenants does so by tenant
//   4. the name of a client              when its jobs are counted (Catalog+JobLimits)
//   5. what belongs to a recording       labels, conversions, answers, what finished jobs have measured: only with the
//                                        recording's row locked or held, or skipping rows that others have locked
//   6. `garbage`, `removals`             objects, then outdated descriptions, then new ones, each by key
//   7. `audit_lines`                     rows of the process's own
//
// What may also be done later, such as sweeps, skips rows that others have locked, and waits for none.
//
//   two transitions of one job           the second waits for the row and reads it as the first left it
//   a new job, its recording deleted     the job holds the recording's row (`held`); the deletion waits, and its next
//                                        statement sees the job and cancels it. Or the job waits, and finds no
//                                        recording
//   two jobs for the same work           `sharedJob` locks the recording's row before it looks
//   two changes of one recording         read with the lock, so that none writes back what another has changed
//   a tenant's limits                    checked after the insertion, whose trigger has locked the tenant's row
//   a client's limits on jobs            counted under the lock of its name, after the insertion, or before the claim
//   labels, a new profile                lock the recording's row, or hold it; so does whatever changes labels
//   a tenant's number of profiles        counted under the lock of a name
//   the limit of conversions             the same: each sees what the others have kept
//
// Serializable calls (about uploads) don't see the reads of those above. They hold or change the same rows, which
// PostgreSQL refuses if a row was changed since they began; then they are repeated.

extension Catalog {
  /// Returns the time that decides about leases: by the database's clock, so that a node whose own is wrong neither
  /// loses a lease nor takes one that another holds.
  func now(_ db: CatalogTransaction) throws -> Timestamp {
    if let clock = holder.clock { return clock() }
    guard let clock = db.dialect.clock else {
      let now = self.clock.time
      noteOwnClock(now)
      return now
    }
    let asked = self.clock.now
    let now = Timestamp(milliseconds: try value(db.rows("SELECT \(clock) AS now")[0], "now"))
    note(clock: now, after: self.clock.now - asked)
    return now
  }

  /// Compares this machine's clock with the database's, if that has one.
  package func compareClocks() throws(StorageError) { try read { _ = try now($0) } }

  /// Locks a job and the recordings that its transitions may change, and returns the job and the time, which is not
  /// later than the end of the wait for the job. nil if there is no such job.
  ///
  /// With a tenant, another tenant's job doesn't exist.
  func locked(
    _ id: JobID, of tenant: Tenant? = nil, _ db: CatalogTransaction
  ) throws -> (job: Job, now: Timestamp)? {
    let lock = db.dialect.changingRows
    if !lock.isEmpty {
      let filter = Filter(id: id.text, of: tenant)
      _ = try db.rows(
        "SELECT id FROM recordings WHERE id = (SELECT recording FROM jobs\(filter.text))\(lock)", filter.arguments)
    }
    guard let found = try locked(id, of: tenant, by: lock, db) else { return nil }
    // A finished job doesn't change, so what it has made may be someone else's who waits for the job.
    if !lock.isEmpty, !found.job.state.isFinished, let output = found.job.output {
      _ = try db.rows("SELECT id FROM recordings WHERE id = ?\(lock)", [output.text])
    }
    return found
  }

  /// Locks a job's row. `lock` is one of the dialect's ends of a SELECT.
  func locked(
    _ id: JobID, of tenant: Tenant? = nil, by lock: String, _ db: CatalogTransaction
  ) throws -> (job: Job, now: Timestamp)? {
    let clock = holder.clock == nil ? db.dialect.clock : nil
    let columns = clock.map { "*, \($0) AS now" } ?? "*"
    let filter = Filter(id: id.text, of: tenant)
    guard let row = try db.row("SELECT \(columns) FROM jobs\(filter.text)\(lock)", filter.arguments) else { return nil }
    let job = try JobRow(row: row).job
    return (job, clock == nil ? holder.clock?() ?? self.clock.time : Timestamp(milliseconds: try value(row, "now")))
  }

  /// Returns a recording that the transaction is about to delete, or nil. The job that is to make it is locked before.
  static func lockedToDelete(
    _ id: RecordingID, of tenant: Tenant? = nil, _ db: CatalogTransaction
  ) throws -> Recording? {
    if !db.dialect.changingRows.isEmpty {
      var filter = Filter()
      filter.add("output = ?", id.text)
      filter.add("state IN ('queued', 'running')")
      filter.add(tenant)
      _ = try db.rows("SELECT id FROM jobs\(filter.text) ORDER BY id\(db.dialect.changingRows)", filter.arguments)
    }
    return try locked(id, of: tenant, db)
  }

  /// Keeps recordings from being changed or deleted until the end of the transaction.
  static func hold(_ ids: [RecordingID], _ db: CatalogTransaction) throws {
    guard !db.dialect.holdingRows.isEmpty else { return }
    for id in Set(ids.map(\.text)).sorted() {
      _ = try db.rows("SELECT id FROM recordings WHERE id = ?\(db.dialect.holdingRows)", [id])
    }
  }

  /// Takes the lock of a name until the end of the transaction.
  static func lock(name: String, _ db: CatalogTransaction) throws {
    if let lock = db.dialect.lockingName { _ = try db.rows(lock, [name]) }
  }

  /// Runs a DELETE that skips rows which other transactions have locked, for what may also be deleted later. Returns
  /// the number of deleted rows.
  @discardableResult
  static func sweep(
    _ table: String, where condition: String, _ arguments: [(any SQLConvertible)?] = [], _ db: CatalogTransaction
  ) throws -> Int {
    let row = db.dialect.rowIdentity
    return try db.run(
      """
      DELETE FROM \(table) WHERE \(row) IN (
        SELECT \(row) FROM \(table) WHERE \(condition)\(db.dialect.skippingLocked))
      """, arguments)
  }

  /// Returns a recording that can't be changed or deleted until the end of the transaction, or nil.
  static func held(_ id: RecordingID, of tenant: Tenant? = nil, _ db: CatalogTransaction) throws -> Recording? {
    try recording(id, of: tenant, by: db.dialect.holdingRows, db)
  }

  /// Returns a recording that the transaction is about to change, or nil.
  static func locked(_ id: RecordingID, of tenant: Tenant? = nil, _ db: CatalogTransaction) throws -> Recording? {
    try recording(id, of: tenant, by: db.dialect.changingRows, db)
  }
}
