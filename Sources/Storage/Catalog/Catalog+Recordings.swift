import GRDB

extension Catalog {
  /// Inserts a recording, its jobs, their webhooks, and the stored answer in one transaction.
  ///
  /// The recording's files must already be durable. Throws `.noSuchRecording` if a job's source is neither this
  /// recording nor in the catalog, because it was deleted meanwhile; `.tokenIsSpent` if `token` was used before;
  /// `.limitReached` if the tenant would have more than `limits`.
  package func insert(
    _ recording: Recording, jobs: [Job] = [], webhooks: [Webhook] = [], answer: KeptAnswer? = nil,
    spending token: UploadToken? = nil, within limits: StoredLimits? = nil
  ) throws(StorageError) {
    try write { db in
      try Self.spend(token, db)
      try RecordingRow(recording).insert(db)
      try Self.check(limits, of: recording.tenant, db)
      for job in jobs { try Self.insert(job, db) }
      for webhook in webhooks { try WebhookRow(webhook).insert(db) }
      try Self.keep(answer, for: recording.tenant, db)
    }
  }

  /// Returns the recording, or nil.
  package func recording(_ id: RecordingID) throws(StorageError) -> Recording? {
    try read { try Self.recording(id, $0) }
  }

  /// Returns at most `limit` recordings older than `before`, newest first.
  ///
  /// With `nameContaining`, returns only recordings whose name contains the text, ignoring case; every name contains
  /// the empty text. A search for three or more characters uses an index; a shorter one reads names until it has
  /// `limit` matches, in the worst case all.
  package func recordings(
    limit: Int, before: RecordingID? = nil, nameContaining query: String? = nil
  ) throws(StorageError) -> [Recording] {
    try recordings(of: nil, limit: limit, before: before, nameContaining: query)
  }

  /// The same for one tenant; nil for all of them.
  func recordings(
    of tenant: Tenant?, limit: Int, before: RecordingID? = nil, nameContaining query: String? = nil
  ) throws(StorageError) -> [Recording] {
    var (table, order, conditions) = ("recordings", "id", [String]())
    var arguments: [String: (any DatabaseValueConvertible)?] = ["limit": max(0, limit)]
    if let tenant {
      conditions.append("tenant = :tenant")
      arguments["tenant"] = tenant.name
    }
    if let before {
      conditions.append("id < :before")
      arguments["before"] = before.text
    }
    if let query, !query.isEmpty {
      let folded = NameSearch.fold(query)
      conditions.append("instr(recordings.name_folded, :query) > 0")
      arguments["query"] = folded
      if let trigrams = NameSearch.trigrams(of: folded) {
        // Newest first out of the index, so that a common name is found as fast as a rare one.
        table = "recording_names CROSS JOIN recordings ON number = recording_names.rowid"
        order = "recording_names.rowid"
        conditions.insert("recording_names MATCH :trigrams AND recording_names.rowid <= :number", at: 0)
        arguments["trigrams"] = trigrams
        arguments["number"] = before?.greatestNumber ?? .max
      }
    }
    let sql = "SELECT recordings.* FROM \(table)\(Self.filter(conditions)) ORDER BY \(order) DESC LIMIT :limit"
    let bound = StatementArguments(arguments)
    return try read { db in
      try Self.intact(Row.fetchAll(db.cachedStatement(sql: sql), arguments: bound)) {
        try RecordingRow(row: $0).recording
      }
    }
  }

  /// Returns the readable rows. Damaged ones are skipped, so that they don't hide the others.
  static func intact<Value>(_ rows: [Row], _ make: (Row) throws -> Value) throws -> [Value] {
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
    _ id: RecordingID, if isExpected: (Recording) -> Bool = { _ in true }, _ change: (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try write { db in
      if let recording = try Self.recording(id, db), !isExpected(recording) { throw StorageError.changedMeanwhile }
      return try Self.update(id, db, change)
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
    _ id: RecordingID, if isExpected: (Recording) -> Bool = { _ in true }
  ) throws(StorageError) -> [Job]? {
    try write { db in
      guard let recording = try Self.recording(id, db) else { return nil }
      guard isExpected(recording) else { throw StorageError.changedMeanwhile }
      let cancelled = try delete(id, db)
      for deleted in [id] + cancelled.compactMap(\.output) { changes.note(owner: recording.tenant, of: deleted) }
      return cancelled
    }
  }

  static func recording(_ id: RecordingID, _ db: Database) throws -> Recording? {
    try RecordingRow.fetchOne(
      db.cachedStatement(sql: "SELECT * FROM recordings WHERE id = ?"), arguments: [id.text])?.recording
  }

  static func update(_ id: RecordingID, _ db: Database, _ change: (inout Recording) -> Void) throws -> Recording? {
    guard var recording = try recording(id, db) else { return nil }
    change(&recording)
    precondition(recording.id == id, "an update keeps the id")
    try RecordingRow(recording).update(db)
    return recording
  }

  /// Deletes `id` and, transitively, the unfinished recordings whose jobs are canceled with it.
  func delete(_ id: RecordingID, _ db: Database) throws -> [Job] {
    let now = holder.now()
    var cancelled: [Job] = []
    var doomed = [id]
    while let id = doomed.popLast() {
      let row = try Row.fetchOne(
        db.cachedStatement(sql: "DELETE FROM recordings WHERE id = ? RETURNING derived_job"), arguments: [id.text])
      try Self.erase(id.text, madeBy: row.flatMap { try nullable($0, "derived_job") }, db)
      for unfinished in try Self.unfinishedJobs(touching: id, db) {
        let moved = try move(unfinished, hasWritten: true, db) { $0.cancel(at: now) }
        guard let job = moved.written else { continue }
        cancelled.append(job)
        if let output = job.output, output != id { doomed.append(output) }
      }
    }
    try Self.forgetOrphanedConversions(db)
    return cancelled
  }

  /// Returns " WHERE a AND b", or an empty string. The conditions are constants in this module; values are always
  /// bound.
  static func filter(_ conditions: [String]) -> String {
    conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
  }
}
