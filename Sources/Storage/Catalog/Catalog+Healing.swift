// Repairs rows that disk damage has made unreadable, using the description in the recording's folder, and restarts work
// whose job was lost.

extension Catalog {
  /// Returns the IDs of unreadable recordings, as stored in the table; they may be invalid. Reads every row.
  func unreadableRecordings() throws(StorageError) -> [String] {
    var unreadable: [String] = []
    try eachUnreadableRecording { unreadable.append($0) }
    return unreadable
  }

  /// Calls `body` with each of these IDs.
  func eachUnreadableRecording(_ body: (String) -> Void) throws(StorageError) {
    try read { db in
      try db.eachRow("SELECT * FROM recordings") { row in
        do { _ = try RecordingRow(row: row) } catch { body(row["id"].flatMap(String.init) ?? "") }
        return true
      }
    }
  }

  /// Replaces the unreadable row with the ID of `recording`.
  func replaceUnreadable(with recording: Recording) throws(StorageError) {
    try write { db in
      try db.erase("DELETE FROM recordings WHERE id = ?", [recording.id.text])
      try RecordingRow(recording).insert(db)
    }
  }

  /// Deletes a row whose ID is invalid. It names no folder, so nothing else is lost.
  func deleteUnreadable(_ id: String) throws(StorageError) {
    guard RecordingID(id) == nil else { return }
    try write { _ = try $0.erase("DELETE FROM recordings WHERE id = ?", [id]) }
  }

  /// Deletes the unreadable rows of jobs, uploads, and webhooks, and returns their number. A recording that waits for
  /// such a job gets a new job, and the bytes of such an upload are set aside.
  func deleteUnreadableWork() throws(StorageError) -> Int {
    try write { db in
      var count = 0
      func check(_ table: String, _ make: (SQLRow) throws -> Void) throws {
        let identity = db.dialect.rowIdentity
        for row in try db.rows("SELECT \(identity) AS row, * FROM \(table)") {
          do { try make(row) } catch {
            try db.erase("DELETE FROM \(table) WHERE \(identity) = ?", [row["row"]])
            count += 1
          }
        }
      }
      try check("jobs") { _ = try JobRow(row: $0) }
      try check("uploads") { _ = try UploadRow(row: $0) }
      try check("webhooks") { _ = try WebhookRow(row: $0) }
      return count
    }
  }

  /// Inserts recordings that had lost their rows, along with their jobs, in one transaction.
  func insert(_ lost: [(recording: Recording, jobs: [Job])]) throws(StorageError) {
    try write { db in
      for (recording, jobs) in lost {
        try RecordingRow(recording).insert(db)
        for job in jobs { try Self.insert(job, db) }
      }
    }
  }

  /// Inserts rows that another catalog has, in this order.
  func insert(_ rows: [(table: String, row: SQLRow)]) throws(StorageError) {
    try write { db in
      for (table, row) in rows {
        let marks = Array(repeating: "?", count: row.columns.count).joined(separator: ", ")
        try db.run(
          "INSERT INTO \(table) (\(row.columns.joined(separator: ", "))) VALUES (\(marks))", bound: row.values)
      }
    }
  }

  /// Finishes a recording whose row has no audio although its folder shows that it is complete, because the row comes
  /// from an older catalog. Ends the job that was to produce the recording.
  func finish(with recording: Recording) throws(StorageError) {
    try write { db in
      _ = try Self.update(recording.id, db) { $0 = recording }
      for job in try Self.unfinishedJobs(touching: recording.id, db) where job.output == recording.id {
        let result = #"{"recording":"\#(recording.id)"}"#
        let now = try now(db)
        _ = try move(job, hasWritten: false, at: now, db) { $0.succeed(asFound: result, at: now) }
      }
    }
  }

  /// Returns the readable ones of at most `limit` recordings whose waveform waits for a job that is missing or has
  /// ended, so that it would wait forever; by ID, and with what continues after them, nil at the end.
  func strandedRecordings(
    limit: Int, after place: String? = nil
  ) throws(StorageError) -> (recordings: [Recording], next: String?) {
    try read { db in
      let rows = try db.rows(
        """
        SELECT * FROM recordings WHERE waveform_state IN ('queued', 'building') AND NOT EXISTS (
          SELECT 1 FROM jobs WHERE jobs.id = waveform_job AND jobs.state IN ('queued', 'running')) AND id > ?
        ORDER BY id LIMIT \(limit)
        """, [place ?? ""])
      return (try Self.intact(rows) { try RecordingRow(row: $0).recording }, Self.place(after: rows, limit: limit))
    }
  }

  /// Inserts a new job to build the waveform of a stranded recording; deletes the row if the recording was never
  /// produced and so has no content. Does nothing if the recording is no longer stranded.
  func resume(stranded id: RecordingID) throws(StorageError) {
    try write(.statementLocks) { db in
      guard let recording = try Self.lockedToDelete(id, db), [.queued, .building].contains(recording.waveformState),
        try !Self.isUnfinished(recording.waveformJob, db)
      else { return }
      guard recording.audioFile != nil else { return _ = try delete(id, of: recording.tenant, at: now(db), db) }
      let job = Job(kind: .waveform, recording: id, createdAt: time)
      try Self.insert(job, db)
      _ = try Self.update(id, db) { ($0.waveformState, $0.waveformJob, $0.waveformKey) = (.queued, job.id, nil) }
    }
  }

  /// Whether a job waits or runs, even if its row can't be read otherwise.
  private static func isUnfinished(_ id: JobID?, _ db: CatalogTransaction) throws -> Bool {
    guard let id else { return false }
    let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ? AND state IN ('queued', 'running'))"
    return try db.first(sql, [id.text], as: Bool.self) == true
  }
}
