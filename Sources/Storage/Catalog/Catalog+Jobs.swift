extension Catalog {
  /// Inserts a job. Throws `.noSuchRecording` if its source isn't in the catalog, and `.limitReached` as `queue` does.
  package func insert(_ job: Job) throws(StorageError) {
    try write(.statementLocks) { try queue(job, $0) }
  }

  /// Returns the job, or nil.
  package func job(_ id: JobID) throws(StorageError) -> Job? { try job(id, of: nil) }

  /// Returns the job if it is `tenant`'s; with nil, any tenant's.
  func job(_ id: JobID, of tenant: Tenant?) throws(StorageError) -> Job? {
    try read { try Self.job(id, of: tenant, $0) }
  }

  /// Returns at most `limit` jobs older than `before`, newest first, optionally only those in `state` or with
  /// `recording` as their source.
  package func jobs(
    state: JobState? = nil, recording: RecordingID? = nil, limit: Int, before: JobID? = nil
  ) throws(StorageError) -> [Job] {
    try jobs(of: nil, state: state, recording: recording, limit: limit, before: before)
  }

  /// Returns a page of the jobs of `tenant`; with nil, of all tenants.
  func jobs(
    of tenant: Tenant?, state: JobState?, recording: RecordingID?, limit: Int, before: JobID?
  ) throws(StorageError) -> [Job] {
    var filter = Filter()
    filter.add(tenant)
    if let state { filter.add("state = ?", state.rawValue) }
    if let recording { filter.add("recording = ?", recording.text) }
    if let before { filter.add("id < ?", before.text) }
    let sql = "SELECT * FROM jobs\(filter.text) ORDER BY id DESC LIMIT ?"
    let arguments = filter.arguments + [max(0, limit)]
    return try read { db in
      try Self.intact(db.rows(sql, arguments)) { try JobRow(row: $0).job }
    }
  }

  /// Returns the newest job of a kind, in this state, with `recording` as its source; nil if there is none.
  package func latestJob(
    kind: JobKind, state: JobState, of recording: RecordingID
  ) throws(StorageError) -> Job? {
    try latestJob(kind: kind, state: state, of: recording, of: nil)
  }

  /// Returns the newest such job if it is `tenant`'s; with nil, any tenant's.
  func latestJob(
    kind: JobKind, state: JobState, of recording: RecordingID, of tenant: Tenant?
  ) throws(StorageError) -> Job? {
    var filter = Filter()
    filter.add("recording = ?", recording.text)
    filter.add("kind = ?", kind.rawValue)
    filter.add("state = ?", state.rawValue)
    filter.add(tenant)
    let (sql, arguments) = ("SELECT * FROM jobs\(filter.text) ORDER BY id DESC LIMIT 1", filter.arguments)
    return try read { db in try Self.intact(db.rows(sql, arguments)) { try JobRow(row: $0).job }.first }
  }

  /// Applies `change` to a job and returns the result, or nil if there is no such job. For tests: what changes a job's
  /// state otherwise is in Catalog+Leases.
  @discardableResult
  package func update(_ id: JobID, _ change: @Sendable (inout Job) -> Void) throws(StorageError) -> Job? {
    try write { try Self.update(id, $0, change) }
  }

  /// Returns queued and running jobs, oldest first; a restart runs them again.
  package func unfinishedJobs() throws(StorageError) -> [Job] {
    try read { db in
      try Self.intact(
        db.rows("SELECT * FROM jobs WHERE state IN ('queued', 'running') ORDER BY id")
      ) { try JobRow(row: $0).job }
    }
  }

  static func insert(_ job: Job, of tenant: Tenant? = nil, _ db: CatalogTransaction) throws {
    guard let source = try held(job.recording, of: tenant, db) else {
      throw StorageError.noSuchRecording(job.recording)
    }
    var job = job
    job.tenant = source.tenant
    try JobRow(job).insert(db)
  }

  static func job(_ id: JobID, of tenant: Tenant? = nil, _ db: CatalogTransaction) throws -> Job? {
    let filter = Filter(id: id.text, of: tenant)
    return try db.row("SELECT * FROM jobs\(filter.text)", filter.arguments).map(JobRow.init(row:))?.job
  }

  static func update(_ id: JobID, _ db: CatalogTransaction, _ change: @Sendable (inout Job) -> Void) throws -> Job? {
    guard var job = try job(id, db) else { return nil }
    change(&job)
    precondition(job.id == id, "an update keeps the id")
    try JobRow(job).update(db)
    return job
  }

  /// Returns the queued and running jobs that read or produce `id`. Scans all unfinished jobs, of which there are few.
  /// With `changing`, locks them.
  static func unfinishedJobs(
    touching id: RecordingID, changing: Bool = false, _ db: CatalogTransaction
  ) throws -> [Job] {
    try intact(
      db.rows(
        """
        SELECT * FROM jobs WHERE (recording = ? OR output = ?) AND state IN ('queued', 'running')
        ORDER BY id\(changing ? db.dialect.changingRows : "")
        """, [id.text, id.text])
    ) { try JobRow(row: $0).job }
  }
}
