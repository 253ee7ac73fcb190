// What remains of a deleted recording, and what removes it:
//
//   its row, labels, conversions     deleted in the transaction; secure_delete overwrites them with zeros
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
  /// Deletes, in the transaction that has deleted a recording's row, what other tables have of it, and records that its
  /// files may be removed. `row` has the columns `erasedColumns` of the deleted row.
  func erase(_ id: RecordingID, _ row: SQLRow?, at now: Timestamp, _ db: CatalogTransaction) throws {
    try noteObjects(of: id, row, at: now, db)
    try Self.erase(id.text, madeBy: try row.flatMap { try nullable($0, "derived_job") }, at: now, db)
  }

  /// The columns of a deleted row that `erase` needs.
  static let erasedColumns =
    "derived_job, audio_key, waveform_key, working_key, audio_file, waveform_file, working_file"

  private static func erase(_ id: String, madeBy job: String?, at now: Timestamp, _ db: CatalogTransaction) throws {
    try deleteLabels(of: id, db)
    try forgetConversions(of: id, db)
    try db.run("DELETE FROM answers WHERE location = ?", ["/v1/recordings/\(id)"])
    try db.run("UPDATE uploads SET metadata = NULL WHERE recording = ?", [id])
    try forgetSource(ofProfilesFrom: id, at: now, db)
    try forgetMeasurements(of: id, madeBy: job, db)
    try noteRemoval(of: id, db)
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

  /// Removes traces of deleted rows from the catalog's files, in steps that others can write between. Throws if another
  /// process reads the catalog meanwhile.
  package func eraseTraces(pagesAtOnce: Int = 500) throws(StorageError) {
    try engine.eraseTraces(pagesAtOnce: pagesAtOnce)
  }
}
