import GRDB

extension Catalog {
  /// What the catalog says of files that were found under an id.
  enum Claim: Equatable {
    /// A row names them, readable or not.
    case owned
    /// Their row was deleted: they may go.
    case removed
    /// An upload that has become a recording: its part is only a second name of the recording's audio, if that is
    /// there.
    case finished
    /// The catalog has no record of them.
    case unknown
  }

  /// Notes, in the transaction that deletes a row, that its files may be removed.
  static func noteRemoval(of id: String, _ db: Database) throws {
    try db.cachedStatement(sql: "INSERT OR IGNORE INTO removals (id) VALUES (?)").execute(arguments: [id])
  }

  /// Forgets removals whose files are gone for good.
  func forgetRemovals(_ ids: [String]) throws(StorageError) {
    guard !ids.isEmpty else { return }
    try write { db in
      let statement = try db.cachedStatement(sql: "DELETE FROM removals WHERE id = ?")
      for id in ids { try statement.execute(arguments: [id]) }
    }
  }

  /// The ids that were removed since the last start.
  func removals() throws(StorageError) -> [String] {
    try read { try String.fetchAll($0, sql: "SELECT id FROM removals") }
  }

  func claim(on id: RecordingID) throws(StorageError) -> Claim { try claim(on: id.text, in: "recordings") }

  /// What the catalog says of an upload's part.
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
