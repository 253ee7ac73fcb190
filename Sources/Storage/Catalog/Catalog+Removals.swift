import GRDB

extension Catalog {
  /// What the catalog knows about files found under an ID.
  enum Claim: Equatable {
    /// They belong to a row, readable or not.
    case owned
    /// Their row was deleted, so they can be removed.
    case removed
    /// They belong to an upload that has become a recording: its part file is only a second name of the recording's
    /// audio, if that exists.
    case finished
    /// The catalog has no record of them.
    case unknown
  }

  /// Records, in the transaction that deletes a row, that its files may be removed. Replaces an earlier record, so that
  /// ChangedRecordings sees every deletion.
  static func noteRemoval(of id: String, _ db: Database) throws {
    try db.cachedStatement(sql: "INSERT OR REPLACE INTO removals (id) VALUES (?)").execute(arguments: [id])
  }

  /// Deletes the records of removals whose files are gone permanently.
  func forgetRemovals(_ ids: [String]) throws(StorageError) {
    guard !ids.isEmpty else { return }
    try write { db in
      let statement = try db.cachedStatement(sql: "DELETE FROM removals WHERE id = ?")
      for id in ids { try statement.execute(arguments: [id]) }
    }
  }

  /// Returns the IDs removed since the last start.
  func removals() throws(StorageError) -> [String] {
    try read { try String.fetchAll($0, sql: "SELECT id FROM removals") }
  }

  func claim(on id: RecordingID) throws(StorageError) -> Claim { try claim(on: id.text, in: "recordings") }

  /// Returns what the catalog knows about an upload's part file.
  func claim(on id: UploadID) throws(StorageError) -> Claim {
    let isFinished = try read { db in
      try Bool.fetchOne(
        db, sql: "SELECT recording IS NOT NULL FROM uploads WHERE id = ?", arguments: [id.text])
    }
    if isFinished == true { return .finished }
    return try claim(on: id.text, in: "uploads")
  }

  private func claim(on id: String, in table: String) throws(StorageError) -> Claim {
    try read { db in
      func has(_ table: String) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM \(table) WHERE id = ?)", arguments: [id]) ?? false
      }
      if try has(table) { return .owned }
      return try has("removals") ? .removed : .unknown
    }
  }
}
