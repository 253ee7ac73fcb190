import GRDB

// What remains of a deleted recording, and what removes it:
//
//   its row, labels, conversions     deleted in the transaction; secure_delete overwrites them with zeros
//   kept answers                     contain the Recording object: deleted in the same transaction
//   the index of names               FTS5 (before 3.42) only marks an entry as deleted, until parts of the index are
//                                    merged: `eraseTraces` merges all of them
//   the log of writes (-wal)         has earlier versions of pages: `eraseTraces` empties and truncates it
//   the record in `removals`         only the ID, until the files are gone

extension Catalog {
  /// Deletes, in the transaction that deletes a recording's row, what other tables have of it, and records that its
  /// files may be removed.
  static func erase(_ id: String, _ db: Database) throws {
    try deleteLabels(of: id, db)
    try db.cachedStatement(sql: "DELETE FROM answers WHERE location = ?").execute(arguments: ["/v1/recordings/\(id)"])
    try noteRemoval(of: id, db)
  }

  /// Merging the index takes about a second for this many names.
  private static let namesMergedAtOnce = 20_000

  /// Removes what is left of deleted rows in the catalog's files. Throws if another process reads the catalog
  /// meanwhile.
  package func eraseTraces() throws(StorageError) {
    try write { db in
      let count =
        try Int.fetchOne(
          db, sql: "SELECT count(*) FROM (SELECT 1 FROM recordings LIMIT ?)",
          arguments: [Self.namesMergedAtOnce]) ?? 0
      guard count < Self.namesMergedAtOnce else { return }
      try db.execute(sql: "INSERT INTO recording_names (recording_names) VALUES ('optimize')")
    }
    try checkpoint()
  }
}
