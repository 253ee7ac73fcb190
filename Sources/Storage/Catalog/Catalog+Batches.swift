// A batch's recordings have their turn in order. The transaction that inserts a recording's job also counts the turn,
// and only from the number that was read: so of several nodes, or of two runs of the service, one begins each job.

extension Catalog {
  /// Maximum number of a client's batches that have not ended.
  package static let openBatchLimit = 100

  /// Inserts a batch of these recordings, its webhook, and the stored answer in one transaction. Throws `.limitReached`
  /// if its client has too many batches that have not ended.
  package func insert(
    _ batch: Batch, of recordings: [RecordingID], webhook: Webhook? = nil, answer: StoredResponse? = nil
  ) throws(StorageError) {
    let texts = recordings.map(\.text).joined()
    try write(.statementLocks) { db in
      try Self.lock(name: "batches of \(batch.client)", db)
      let open = "SELECT count(*) FROM batches WHERE finished_at IS NULL AND tenant = ? AND client = ?"
      let count = try db.first(open, [batch.tenant.name, batch.client], as: Int.self) ?? 0
      guard count < Self.openBatchLimit else {
        throw StorageError.limitReached("open_batches", limit: Int64(Self.openBatchLimit))
      }
      try BatchRow(batch).insert(db)
      try db.run("INSERT INTO batch_recordings (batch, recordings) VALUES (?, ?)", [batch.id.text, texts])
      if let webhook { try WebhookRow(webhook).insert(db) }
      try keep(answer, for: batch.tenant, db)
    }
  }

  /// Returns a batch, or nil; with a tenant, only one of that tenant.
  package func batch(_ id: BatchID, of tenant: Tenant? = nil) throws(StorageError) -> Batch? {
    try read { try Self.batch(id, of: tenant, $0) }
  }

  /// Returns the oldest batches that have not ended, at most `limit`.
  package func openBatches(limit: Int) throws(StorageError) -> [Batch] {
    try read { db in
      let sql = "SELECT * FROM batches WHERE finished_at IS NULL ORDER BY id LIMIT ?"
      return try Self.intact(db.rows(sql, [limit])) { try BatchRow(row: $0).batch }
    }
  }

  /// Returns the recording whose turn is next; nil if there is none, or it can't be read.
  package func nextRecording(of batch: Batch) throws(StorageError) -> RecordingID? {
    let bytes = 36
    return try read { db in
      let sql = "SELECT substr(recordings, ?, ?) FROM batch_recordings WHERE batch = ?"
      let text = try db.first(sql, [batch.begun * bytes + 1, bytes, batch.id.text], as: String.self)
      return text.flatMap(RecordingID.init)
    }
  }

  /// Inserts the job of a batch's next recording, which makes no recording. Throws `.changedMeanwhile` if the turn is
  /// no longer that of `batch`, and like `insert`.
  package func insert(_ job: Job, next batch: Batch) throws(StorageError) {
    try write(.statementLocks) { db in
      try Self.hold([job.recording], db)
      try take(nextOf: batch, db)
      try queue(job, of: batch.tenant, db)
    }
  }

  /// Counts a batch's next recording as ended without any work, with a finished job that says why, if there is one.
  /// Throws `.changedMeanwhile` if the turn is no longer that of `batch`.
  package func pass(_ state: JobState, next batch: Batch, job: Job? = nil) throws(StorageError) {
    try write(.statementLocks) { db in
      try take(nextOf: batch, endedAs: state, db)
      if let job, try Self.held(job.recording, of: batch.tenant, db) != nil {
        try Self.insert(job, of: batch.tenant, db)
      }
    }
  }

  /// Counts the turn of a batch's next recording.
  func take(nextOf batch: Batch, endedAs state: JobState? = nil, _ db: CatalogTransaction) throws {
    let ending = state.map { ", " + Batch.counting("'\($0.rawValue)'", at: "\(time.milliseconds)") } ?? ""
    let count = try db.run(
      "UPDATE batches SET begun = begun + 1\(ending) WHERE id = ? AND begun = ? AND is_cancelled = 0",
      [batch.id.text, batch.begun])
    guard count == 1 else { throw StorageError.changedMeanwhile }
  }

  static func batch(_ id: BatchID, of tenant: Tenant?, _ db: CatalogTransaction) throws -> Batch? {
    let filter = Filter(id: id.text, of: tenant)
    return try db.row("SELECT * FROM batches\(filter.text)", filter.arguments).map(BatchRow.init(row:))?.batch
  }
}

extension TenantCatalog {
  /// Inserts a batch of this tenant; see `Catalog.insert`.
  package func insert(
    _ batch: Batch, of recordings: [RecordingID], webhook: Webhook?, answer: StoredResponse?
  ) throws(StorageError) {
    try whole.insert(batch, of: recordings, webhook: webhook, answer: answer)
  }

  /// Inserts the job of a batch's next recording; see `Catalog.insert`.
  package func insert(_ job: Job, next batch: Batch) throws(StorageError) { try whole.insert(job, next: batch) }

  /// Returns a batch, or nil.
  package func batch(_ id: BatchID) throws(StorageError) -> Batch? { try whole.batch(id, of: tenant) }

  /// Returns at most `limit` batches older than `before`, newest first.
  package func batches(limit: Int, before: BatchID?) throws(StorageError) -> [Batch] {
    var filter = Filter()
    filter.add(tenant)
    if let before { filter.add("id < ?", before.text) }
    let (sql, arguments) = ("SELECT * FROM batches\(filter.text) ORDER BY id DESC LIMIT ?", filter.arguments + [limit])
    return try whole.read { db in try Catalog.intact(db.rows(sql, arguments)) { try BatchRow(row: $0).batch } }
  }

  /// Returns at most `limit` jobs of a batch older than `before`, newest first; with `unfinished`, those that wait or
  /// run.
  package func jobs(
    of batch: BatchID, unfinished: Bool = false, limit: Int, before: JobID? = nil
  ) throws(StorageError) -> [Job] {
    var filter = Filter()
    filter.add("batch = ?", batch.text)
    filter.add(tenant)
    if unfinished { filter.add("state IN ('queued', 'running')") }
    if let before { filter.add("id < ?", before.text) }
    let (sql, arguments) = ("SELECT * FROM jobs\(filter.text) ORDER BY id DESC LIMIT ?", filter.arguments + [limit])
    return try whole.read { db in try Catalog.intact(db.rows(sql, arguments)) { try JobRow(row: $0).job } }
  }

  /// Cancels the recordings of a batch whose turn has not come, and returns it; nil if there is none. The caller must
  /// then cancel its jobs. Throws `.changedMeanwhile`, without any change, if `isExpected` returns false for it.
  package func cancel(
    _ id: BatchID, if isExpected: @Sendable (Batch) -> Bool
  ) throws(StorageError) -> Batch? {
    try whole.write(.statementLocks) { db in
      guard let batch = try Catalog.batch(id, of: tenant, db) else { return nil }
      guard isExpected(batch) else { throw StorageError.changedMeanwhile }
      guard batch.finishedAt == nil else { return batch }
      // The values on the right are those from before.
      try db.run(
        """
        UPDATE batches SET is_cancelled = 1, begun = total, cancelled = cancelled + total - begun,
          finished_at = CASE WHEN succeeded + failed + cancelled + total - begun = total THEN \(whole.time.milliseconds) END
        WHERE id = ? AND tenant = ? AND finished_at IS NULL
        """, [id.text, tenant.name])
      return try Catalog.batch(id, of: tenant, db)
    }
  }
}

/// A batch as a row of `batches`.
struct BatchRow: TableRow {
  static let table = "batches"

  let batch: Batch

  init(_ batch: Batch) { self.batch = batch }

  init(row: SQLRow) throws {
    var batch = Batch(
      id: try identifier(row, "id"), tenant: try tenant(row), client: try value(row, "client"),
      kind: try choice(row, "kind"), parameters: try value(row, "parameters"), total: try value(row, "total"),
      createdAt: Timestamp(milliseconds: try value(row, "created_at")))
    (batch.begun, batch.succeeded) = (try value(row, "begun"), try value(row, "succeeded"))
    (batch.failed, batch.cancelled) = (try value(row, "failed"), try value(row, "cancelled"))
    batch.isCancelled = try value(row, "is_cancelled")
    batch.finishedAt = try instant(row, "finished_at")
    self.batch = batch
    let counts = [batch.succeeded, batch.failed, batch.cancelled]
    guard (0...batch.total).contains(batch.begun), counts.allSatisfy({ $0 >= 0 }), batch.ended <= batch.begun,
      batch.createdAt.isPlausible, batch.finishedAt?.isPlausible ?? true
    else { throw StorageError.corrupt(column: "batches", value: batch.id.text) }
  }

  func encode(to container: inout ColumnValues) throws {
    container["id"] = batch.id.text
    container["tenant"] = batch.tenant.name
    container["client"] = batch.client
    container["kind"] = batch.kind.rawValue
    container["parameters"] = batch.parameters
    container["total"] = batch.total
    container["begun"] = batch.begun
    container["succeeded"] = batch.succeeded
    container["failed"] = batch.failed
    container["cancelled"] = batch.cancelled
    container["is_cancelled"] = batch.isCancelled
    container["created_at"] = batch.createdAt.milliseconds
    container["finished_at"] = batch.finishedAt?.milliseconds
  }
}
