extension Catalog {
  /// Inserts a recording, its jobs, their webhooks, and the stored answer in one transaction.
  ///
  /// The recording's files must already be durable. Throws `.noSuchRecording` if a job's source is neither this
  /// recording nor in the catalog, because it was deleted meanwhile; `.tokenIsSpent` if `token` was used before;
  /// `.limitReached` if the tenant would have more than `limits`; `.changedMeanwhile` if the jobs are to be those of
  /// the next recording of `batch`, and another's turn has come.
  package func insert(
    _ recording: Recording, jobs: [Job] = [], webhooks: [Webhook] = [], answer: StoredResponse? = nil,
    spending token: UploadToken? = nil, within limits: StoredLimits? = nil, next batch: Batch? = nil
  ) throws(StorageError) {
    // A recording that a job is to make has no sound, so its description isn't written yet.
    try write(.statementLocks, describing: recording.audioKey == nil ? .later : .now) { db in
      try Self.hold(jobs.map(\.recording), db)
      if let batch { try take(nextOf: batch, db) }
      try Self.spend(token, db)
      try RecordingRow(recording).insert(db)
      try withdraw(objectsOf: recording, db)
      try Self.check(limits, of: recording.tenant, planning: jobs, db)
      for job in jobs { try queue(job, of: recording.tenant, db) }
      for webhook in webhooks { try WebhookRow(webhook).insert(db) }
      try keep(answer, for: recording.tenant, db)
    }
  }

  /// Inserts a recording whose waveform has already been built, and the job that has built it as its attempt `token`,
  /// in one transaction. Returns the job as it is then, finished.
  ///
  /// All files must already be durable. The attempt began when the job was created. `tracks` and `trackLimit` are as in
  /// `finish`; otherwise like `insert`.
  package func insert(
    _ recording: Recording, finished job: Job, by token: AttemptToken, with result: String,
    adding tracks: [(track: LabelTrack, chunks: [LabelChunk])] = [], trackLimit: Int = 64,
    answer: StoredResponse? = nil, spending uploadToken: UploadToken? = nil, within limits: StoredLimits? = nil
  ) throws(StorageError) -> Job {
    try naming(tracks.map(\.chunks)) { series, db in
      let now = try now(db)
      try Self.spend(uploadToken, db)
      try RecordingRow(recording).insert(db)
      try withdraw(objectsOf: recording, db)
      try Self.insert(job, db)
      guard let queued = try Self.job(job.id, db) else { throw StorageError.changedMeanwhile }
      guard case .written(let running) = try begin(queued, nonce: token.nonce, at: job.createdAt, db),
        case .written(let ended) = try move(
          running, hasWritten: true, at: now, db, { $0.succeed(token, with: result, at: max(now, job.createdAt)) })
      else { throw StorageError.changedMeanwhile }
      try insert(embedded: Array(zip(tracks.map(\.track), series)), of: recording, limit: trackLimit, db)
      try Self.check(limits, of: recording.tenant, db)
      try keep(answer, for: recording.tenant, db)
      return ended
    }
  }

  /// Returns the recording, or nil.
  package func recording(_ id: RecordingID) throws(StorageError) -> Recording? { try recording(id, of: nil) }

  /// Returns the recording if it is `tenant`'s; with nil, any tenant's.
  func recording(_ id: RecordingID, of tenant: Tenant?) throws(StorageError) -> Recording? {
    try read { try Self.recording(id, of: tenant, $0) }
  }

  /// Returns at most `limit` recordings older than `before`, newest first.
  ///
  /// With `nameContaining`, returns only recordings whose name contains the text, ignoring case; every name contains
  /// the empty text. A search for three or more characters uses an index, as does one for fewer in SQLite unless many
  /// names contain them; otherwise names are read until there are `limit` matches, in the worst case all.
  package func recordings(
    limit: Int, before: RecordingID? = nil, nameContaining query: String? = nil
  ) throws(StorageError) -> [Recording] {
    try recordings(of: nil, limit: limit, after: before.map { RecordingPlace($0) }, nameContaining: query)
  }

  /// Returns a page of the recordings of `tenant`, with nil of all tenants, after a place that fits the order.
  func recordings(
    of tenant: Tenant?, limit: Int, after place: RecordingPlace? = nil, nameContaining query: String? = nil,
    in order: RecordingOrder = RecordingOrder()
  ) throws(StorageError) -> [Recording] {
    try page("recordings.*", of: tenant, limit, after: place, query, order) { try RecordingRow(row: $0).recording }
  }

  /// Returns the IDs of such a page, without decoding its rows.
  func recordingIDs(
    of tenant: Tenant?, limit: Int, after place: RecordingPlace?, nameContaining query: String?,
    in order: RecordingOrder
  ) throws(StorageError) -> [RecordingID] {
    try page("recordings.id", of: tenant, limit, after: place, query, order) { try identifier($0, "id") }
  }

  private func page<Value>(
    _ columns: String, of tenant: Tenant?, _ limit: Int, after place: RecordingPlace?, _ query: String?,
    _ order: RecordingOrder, _ make: (SQLRow) throws -> Value
  ) throws(StorageError) -> [Value] {
    let folded = query.flatMap { $0.isEmpty ? nil : NameSearch.fold($0) }
    return try read { db in
      var filter = Filter()
      filter.add(tenant)
      place?.add(to: &filter, in: order, of: tenant)
      var (table, column) = ("recordings", "recordings.id")
      if let folded {
        let isNewestFirst = order == RecordingOrder()
        (table, column) = try db.dialect.search(folded, before: isNewestFirst ? place?.id : nil, &filter, db)
      }
      let direction = order.isAscending ? "ASC" : "DESC"
      if order.key != .created { column = "\(order.column) \(direction), recordings.id" }
      let sql = "SELECT \(columns) FROM \(table)\(filter.text) ORDER BY \(column) \(direction) LIMIT ?"
      return try Self.intact(db.rows(sql, filter.arguments + [max(0, limit)]), make)
    }
  }

  /// Returns the readable rows. Damaged ones are skipped, so that they don't hide the others.
  static func intact<Value>(_ rows: [SQLRow], _ make: (SQLRow) throws -> Value) throws -> [Value] {
    try rows.compactMap { row in
      do { return try make(row) } catch StorageError.corrupt { return nil }
    }
  }

  /// Applies `change` to a recording and returns the result, or nil if there is no such recording.
  ///
  /// In the same transaction, `isExpected` checks the current recording. If it returns false, nothing changes and
  /// `.changedMeanwhile` is thrown.
  @discardableResult
  package func update(
    _ id: RecordingID, if isExpected: @Sendable (Recording) -> Bool = { _ in true },
    _ change: @Sendable (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try update(id, if: isExpected, describing: .now, change)
  }

  func update(
    _ id: RecordingID, of tenant: Tenant? = nil, if isExpected: @Sendable (Recording) -> Bool,
    describing time: DescribingTime, _ change: @Sendable (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try write(.statementLocks, describing: time) { db in
      guard let recording = try Self.locked(id, of: tenant, db) else { return nil }
      guard isExpected(recording) else { throw StorageError.changedMeanwhile }
      return try Self.update(recording, db, change)
    }
  }

  /// Deletes a recording's row; returns nil if there is none. Throws `.changedMeanwhile`, without any change, if
  /// `isExpected` returns false for the current recording.
  ///
  /// In the same transaction, cancels its queued and running jobs and the job that is producing it, and deletes the
  /// unfinished recordings that those jobs were producing; finished results stay. Returns the canceled jobs.
  /// Afterwards, the caller must stop their processes and call `MediaStore.remove` for this recording and then for
  /// every `output` among the jobs.
  package func deleteRecording(
    _ id: RecordingID, of tenant: Tenant? = nil, if isExpected: @Sendable (Recording) -> Bool = { _ in true }
  ) throws(StorageError) -> [Job]? {
    try write(.statementLocks) { db in
      guard let recording = try Self.lockedToDelete(id, of: tenant, db) else { return nil }
      guard isExpected(recording) else { throw StorageError.changedMeanwhile }
      return try delete(id, of: recording.tenant, at: now(db), db)
    }
  }

  /// Whether there is no such recording, and won't be one again if a synchronous standby takes over.
  ///
  /// A server that has recovered shows commits that its standby may not have yet. So this looks in a transaction that
  /// writes, whose commit waits for the standby to have all earlier ones.
  func isGone(_ id: RecordingID, of tenant: Tenant? = nil) throws(StorageError) -> Bool {
    try write(.statementLocks) { db in
      try Self.beat(db)
      return try Self.recording(id, of: tenant, db) == nil
    }
  }

  /// `lock` is one of the dialect's ends of a SELECT.
  static func recording(
    _ id: RecordingID, of tenant: Tenant? = nil, by lock: String = "", _ db: CatalogTransaction
  ) throws -> Recording? {
    let filter = Filter(id: id.text, of: tenant)
    return try db.row("SELECT * FROM recordings\(filter.text)\(lock)", filter.arguments).map(RecordingRow.init(row:))?
      .recording
  }

  static func update(_ id: RecordingID, _ db: CatalogTransaction, _ change: @Sendable (inout Recording) -> Void) throws
    -> Recording?
  {
    try locked(id, db).map { try update($0, db, change) }
  }

  /// Changes a recording, which is locked.
  static func update(
    _ recording: Recording, _ db: CatalogTransaction, _ change: @Sendable (inout Recording) -> Void
  ) throws -> Recording {
    let id = recording.id
    var changed = recording
    change(&changed)
    precondition(changed.id == id, "an update keeps the id")
    let keepsDescription = RecordingDescription.lasting(changed) == RecordingDescription.lasting(recording)
    if !keepsDescription { changed.version = db.version(after: recording, changed.version) }
    try RecordingRow(changed, keepsDescription: keepsDescription).update(db)
    return changed
  }

  /// Deletes a tenant's recording `id`, which is locked, as is the job that is to make it, and, transitively, the
  /// unfinished recordings whose jobs are canceled with it.
  func delete(
    _ id: RecordingID, of tenant: Tenant, at now: Timestamp, _ db: CatalogTransaction
  ) throws -> [Job] {
    // All jobs come before all counters (see Catalog+Locks).
    var cancelled: [Job] = []
    var (doomed, next) = ([id], 0)
    while next < doomed.count {
      for unfinished in try Self.unfinishedJobs(touching: doomed[next], changing: true, db) {
        let moved = try move(unfinished, hasWritten: true, at: now, db) { $0.cancel(at: now) }
        guard let job = moved.written else { continue }
        cancelled.append(job)
        guard let output = job.output, !doomed.contains(output) else { continue }
        // No job can be added for it from now on.
        _ = try Self.locked(output, db)
        doomed.append(output)
      }
      next += 1
    }
    try erase(doomed.map { Owned($0, of: tenant) }, at: now, db)
    return cancelled
  }
}
