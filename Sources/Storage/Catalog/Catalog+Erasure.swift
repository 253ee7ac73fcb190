import GRDB

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
  /// files may be removed. `job` is the ID of the job that made the recording.
  static func erase(_ id: String, madeBy job: String?, _ db: Database) throws {
    try deleteLabels(of: id, db)
    try db.cachedStatement(sql: "DELETE FROM answers WHERE location = ?").execute(arguments: ["/v1/recordings/\(id)"])
    try db.cachedStatement(sql: "UPDATE uploads SET metadata = NULL WHERE recording = ?").execute(arguments: [id])
    try forgetSource(ofProfilesFrom: id, db)
    try forgetMeasurements(of: id, madeBy: job, db)
    try noteRemoval(of: id, db)
  }

  /// Removes what jobs measured in a recording. The result of a denoise job is about both its source and its output, so
  /// it stays as long as one of them does.
  private static func forgetMeasurements(of id: String, madeBy job: String?, _ db: Database) throws {
    let (forget, isGone) = ("UPDATE jobs SET result = NULL WHERE", "NOT EXISTS (SELECT 1 FROM recordings WHERE id =")
    for (condition, key) in [
      ("recording = ? AND kind = 'loudness'", id),
      ("recording = ? AND kind = 'denoise' AND \(isGone) jobs.output)", id),
      ("id = ? AND kind = 'denoise' AND \(isGone) jobs.recording)", job),
    ] {
      try db.cachedStatement(sql: "\(forget) \(condition)").execute(arguments: [key])
    }
  }

  /// Removes traces of deleted rows from the catalog's files. Rewrites the whole index of names, at most
  /// `pagesAtOnce` of its pages in each transaction. Throws if another process reads the catalog meanwhile.
  package func eraseTraces(pagesAtOnce: Int = 500) throws(StorageError) {
    // https://sqlite.org/fts5.html#the_merge_command: a negative number begins to merge all parts, a positive one goes
    // on, and there is nothing left to do if fewer than two rows change.
    var pages = -pagesAtOnce
    while try mergeNames(pages) { pages = pagesAtOnce }
    try checkpoint()
  }

  /// Returns whether there may be more to merge.
  private func mergeNames(_ pages: Int) throws(StorageError) -> Bool {
    try write { db in
      let before = db.totalChangesCount
      try db.execute(
        sql: "INSERT INTO recording_names (recording_names, rank) VALUES ('merge', ?)", arguments: [pages])
      return db.totalChangesCount - before >= 2
    }
  }
}
