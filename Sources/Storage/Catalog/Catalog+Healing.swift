import GRDB

// Rows that a damaged disk has made unreadable, and rows that lost what they refer to. The folder's own description
// puts the first right; the second are begun again.

extension Catalog {
  /// The ids of recordings whose row can't be read, as they stand in the table: they may be no ids at all. Reads every
  /// row.
  func unreadableRecordings() throws(StorageError) -> [String] {
    try read { db in
      var unreadable: [String] = []
      let rows = try Row.fetchCursor(db, sql: "SELECT * FROM recordings")
      while let row = try rows.next() {
        do { _ = try RecordingRow(row: row) } catch {
          unreadable.append((row["id"] as DatabaseValue?).flatMap(String.fromDatabaseValue) ?? "")
        }
      }
      return unreadable
    }
  }

  /// Puts `recording` in the place of the row with its id that can't be read.
  func replaceUnreadable(with recording: Recording) throws(StorageError) {
    try write { db in
      try db.execute(sql: "DELETE FROM recordings WHERE id = ?", arguments: [recording.id.text])
      try RecordingRow(recording).insert(db)
    }
  }

  /// Deletes a row whose id is no id: it names no folder, so nothing else is lost.
  func deleteUnreadable(_ id: String) throws(StorageError) {
    guard RecordingID(id) == nil else { return }
    try write { try $0.execute(sql: "DELETE FROM recordings WHERE id = ?", arguments: [id]) }
  }

  /// Deletes the rows of jobs, uploads and webhooks that can't be read, and how many: a job is begun again for the
  /// recording that waits for it, and the bytes of an upload are kept aside.
  func deleteUnreadableWork() throws(StorageError) -> Int {
    try write { db in
      var count = 0
      func check(_ table: String, _ make: (Row) throws -> Void) throws {
        for row in try Row.fetchAll(db, sql: "SELECT rowid AS row, * FROM \(table)") {
          do { try make(row) } catch {
            try db.execute(sql: "DELETE FROM \(table) WHERE rowid = ?", arguments: [row["row"] as DatabaseValue?])
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

  /// Inserts several recordings that had lost their rows, with their jobs, in one transaction.
  func insert(_ lost: [(recording: Recording, jobs: [Job])]) throws(StorageError) {
    try write { db in
      for (recording, jobs) in lost {
        try RecordingRow(recording).insert(db)
        for job in jobs { try Self.insert(job, db) }
      }
    }
  }

  /// The recording that a row without audio was to become is finished: its folder says so, as the row is from an older
  /// catalog. Ends the job that was to make it.
  func finish(with recording: Recording) throws(StorageError) {
    try write { db in
      _ = try Self.update(recording.id, db) { $0 = recording }
      for job in try Self.unfinishedJobs(touching: recording.id, db) where job.output == recording.id {
        _ = try Self.update(job.id, db) { job in
          (job.state, job.progress, job.finishedAt) = (.succeeded, 1, .now)
          job.result = #"{"recording":"\#(recording.id)"}"#
        }
      }
    }
  }

  /// Recordings that wait for a job which is not there, or has ended: what they wait for will never come.
  func strandedRecordings() throws(StorageError) -> [Recording] {
    try read { db in
      try Self.intact(
        Row.fetchAll(
          db,
          sql: """
            SELECT * FROM recordings WHERE waveform_state IN ('queued', 'building') AND NOT EXISTS (
              SELECT 1 FROM jobs WHERE jobs.id = waveform_job AND jobs.state IN ('queued', 'running'))
            """)
      ) { try RecordingRow(row: $0).recording }
    }
  }

  /// Has the waveform of a stranded recording built by a new job; the row of one that was never made, which holds
  /// nothing, goes. Leaves a recording alone that is not stranded any more.
  func resume(stranded id: RecordingID) throws(StorageError) {
    try write { db in
      guard let recording = try Self.recording(id, db), [.queued, .building].contains(recording.waveformState) else {
        return
      }
      guard recording.audioFile != nil else { return _ = try Self.delete(id, db) }
      let job = Job(kind: .waveform, recording: id)
      try Self.insert(job, db)
      _ = try Self.update(id, db) { ($0.waveformState, $0.waveformJob, $0.waveformFile) = (.queued, job.id, nil) }
    }
  }
}
