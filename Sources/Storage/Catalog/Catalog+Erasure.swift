// What remains of a deleted recording, and what removes it:
//
//   its row, labels, conversions     deleted in the transaction; secure_delete overwrites them with zeros. Chunks of
//                                    labels are only made unreachable: `eraseTraces` deletes them
//   kept answers                     contain the Recording object: deleted in the same transaction
//   the upload it came from          the row stays for a day, but its metadata, with the name, is removed
//   profiles learned from it         are kept, but no longer say where they are from
//   jobs                             are kept, but not what they measured: loudness, and the noise and its levels once
//                                    a denoise job's source and output are both gone
//   attempts                         name folders by the job's ID, and say nothing of the recording
//   the index of names               FTS5 (before 3.42) only marks an entry as deleted, until parts of the index are
//                                    merged: `eraseTraces` merges all of them, in steps that others can write between
//   the log of writes (-wal)         has earlier versions of pages: `eraseTraces` empties and truncates it
//   the record in `removals`         only the ID, until the files are gone

extension Catalog {
  /// Deletes the rows of recordings, which are locked, and what other tables have of them, and records that their files
  /// may be removed. In the order of Catalog+Locks.
  func erase(_ recordings: [Owned<Recording>], at now: Timestamp, _ db: CatalogTransaction) throws {
    for recording in recordings { try Self.forgetSource(ofProfilesFrom: recording.id.text, at: now, db) }
    var rows: [RecordingID: SQLRow] = [:]
    for recording in recordings.sorted(by: { ($0.tenant.name, $0.id) < ($1.tenant.name, $1.id) }) {
      rows[recording.id] =
        try db.eraseReturning(
          "DELETE FROM recordings WHERE id = ? AND tenant = ? RETURNING \(Self.erasedColumns)",
          [recording.id.text, recording.tenant.name]
        ).first
      db.note(deleted: recording.id, of: recording.tenant)
      try deleteLabels(of: recording.id.text, db)
    }
    for id in recordings.map(\.id).sorted() {
      let row = rows[id]
      try noteObjects(of: id, row, at: now, db)
      try Self.erase(id.text, madeBy: try row.flatMap { try nullable($0, "derived_job") }, db)
    }
    for id in recordings.map(\.id.text).sorted() { try Self.noteRemoval(of: id, db) }
  }

  /// The columns of a deleted row that `erase` needs.
  static let erasedColumns = "derived_job, audio_key, waveform_key, working_key, version"

  private static func erase(_ id: String, madeBy job: String?, _ db: CatalogTransaction) throws {
    try forgetConversions(of: id, db)
    try db.run("DELETE FROM answers WHERE location = ?", ["/v1/recordings/\(id)"])
    try db.run("UPDATE uploads SET metadata = NULL WHERE recording = ?", [id])
    try forgetMeasurements(of: id, madeBy: job, db)
  }

  /// Removes what jobs measured in a recording. The result of a denoise job is about both its source and its output, so
  /// it stays as long as one of them does.
  private static func forgetMeasurements(of id: String, madeBy job: String?, _ db: CatalogTransaction) throws {
    let isGone = "NOT EXISTS (SELECT 1 FROM recordings WHERE id ="
    for (condition, key) in [
      ("recording = ? AND kind = 'loudness'", id),
      ("recording = ? AND kind = 'denoise' AND \(isGone) jobs.output)", id),
      ("id = ? AND kind = 'denoise' AND \(isGone) jobs.recording)", job),
    ] {
      guard let key else { continue }
      let changed = try db.rows("UPDATE jobs SET result = NULL WHERE \(condition) RETURNING id, tenant", [key])
      for row in changed { db.note(changed: try identifier(row, "id") as JobID, of: try tenant(row)) }
    }
  }

  /// Deletes the labels of deleted tracks, and removes traces of deleted rows from the catalog's files, in
  /// steps that others can write between. Throws if another process reads the catalog meanwhile.
  package func eraseTraces(pagesAtOnce: Int = 500) throws(StorageError) {
    while try eraseChunks() {}
    try engine.eraseTraces(pagesAtOnce: pagesAtOnce)
  }
}
