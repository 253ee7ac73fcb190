import GRDB

// Rows that a damaged disk has made unreadable, and rows that lost what they refer to. The folder's own description puts
// the first right; the second are begun again.

extension Catalog {
  /// The ids of recordings whose row can't be read, as they stand in the table: they may be no ids at all. Reads every row.
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

  /// Has the waveform of a stranded recording built by a new job; the row of one that was never made, which holds nothing,
  /// goes. Leaves a recording alone that is not stranded any more.
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
