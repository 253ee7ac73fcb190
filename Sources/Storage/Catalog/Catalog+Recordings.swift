import GRDB

extension Catalog {
  /// Inserts a recording, its jobs, their webhooks and the kept answer in one transaction.
  ///
  /// The recording's files must be durable already. Throws `.noSuchRecording` where a job's source is neither this
  /// recording nor in the catalogue, having been deleted meanwhile.
  package func insert(
    _ recording: Recording, jobs: [Job] = [], webhooks: [Webhook] = [], answer: KeptAnswer? = nil
  ) throws(StorageError) {
    try write { db in
      try RecordingRow(recording).insert(db)
      for job in jobs { try Self.insert(job, db) }
      for webhook in webhooks { try WebhookRow(webhook).insert(db) }
      try Self.keep(answer, db)
    }
  }

  /// The recording, nil where there is none.
  package func recording(_ id: RecordingID) throws(StorageError) -> Recording? {
    try read { try Self.recording(id, $0) }
  }

  /// At most `limit` recordings, newest first, from the first that is older than `before`.
  ///
  /// With `nameContaining`, those whose name has it as a part, whatever the case; an empty one is in every name. A
  /// search reads names until it has `limit` matches, at worst all.
  package func recordings(
    limit: Int, before: RecordingID? = nil, nameContaining query: String? = nil
  ) throws(StorageError) -> [Recording] {
    var conditions: [String] = []
    var arguments: [String: (any DatabaseValueConvertible)?] = ["limit": max(0, limit)]
    if let before {
      conditions.append("id < :before")
      arguments["before"] = before.text
    }
    if let query, !query.isEmpty {
      let isASCII = query.utf8.allSatisfy { $0 < 0x80 }
      let canonical = isASCII ? "" : " OR canonically_contains(name_folded, :query)"
      conditions.append("(instr(name_folded, :query) > 0\(canonical))")
      arguments["query"] = NameSearch.fold(query)
    }
    let sql = "SELECT * FROM recordings\(Self.filter(conditions)) ORDER BY id DESC LIMIT :limit"
    let bound = StatementArguments(arguments)
    return try read { db in
      try Self.intact(Row.fetchAll(db.cachedStatement(sql: sql), arguments: bound)) {
        try RecordingRow(row: $0).recording
      }
    }
  }

  /// What can be read of `rows`: a damaged row is left out, so that it doesn't hide the others.
  static func intact<Value>(_ rows: [Row], _ make: (Row) throws -> Value) throws -> [Value] {
    try rows.compactMap { row in
      do { return try make(row) } catch StorageError.corrupt { return nil }
    }
  }

  /// Changes a recording by what `change` makes of it; the recording as it is now, nil where there is none.
  ///
  /// `isExpected` judges the recording as it is, in the same transaction; where it says no, nothing is changed and
  /// `.changedMeanwhile` thrown.
  @discardableResult
  package func update(
    _ id: RecordingID, if isExpected: (Recording) -> Bool = { _ in true }, _ change: (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try write { db in
      if let recording = try Self.recording(id, db), !isExpected(recording) { throw StorageError.changedMeanwhile }
      return try Self.update(id, db, change)
    }
  }

  /// Removes a recording's row; nil where there is none. Throws `.changedMeanwhile`, and removes nothing, where
  /// `isExpected` says no to the recording as it is.
  ///
  /// In the same transaction, its queued and running jobs become cancelled, as does the job that is making it, and the
  /// unfinished recordings that those jobs were making go too; finished results stay. The cancelled jobs are given
  /// back. Their processes are the caller's to stop, and `MediaStore.remove` the caller's to call, for this recording
  /// and then for every `output` among them.
  package func deleteRecording(
    _ id: RecordingID, if isExpected: (Recording) -> Bool = { _ in true }
  ) throws(StorageError) -> [Job]? {
    try write { db in
      guard let recording = try Self.recording(id, db) else { return nil }
      guard isExpected(recording) else { throw StorageError.changedMeanwhile }
      return try Self.delete(id, db)
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

  /// Deletes `id` and, by way of cancelled jobs, whatever unfinished recordings hang on it.
  static func delete(_ id: RecordingID, _ db: Database) throws -> [Job] {
    var cancelled: [Job] = []
    var doomed = [id]
    while let id = doomed.popLast() {
      try db.cachedStatement(sql: "DELETE FROM recordings WHERE id = ?").execute(arguments: [id.text])
      try noteRemoval(of: id.text, db)
      for job in try unfinishedJobs(touching: id, db) {
        cancelled.append(try cancel(job, db))
        if let output = job.output, output != id { doomed.append(output) }
      }
    }
    try forgetOrphanedConversions(db)
    return cancelled
  }

  /// " WHERE a AND b", or nothing. The texts are this module's own; values are always bound.
  static func filter(_ conditions: [String]) -> String {
    conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND ")
  }
}
