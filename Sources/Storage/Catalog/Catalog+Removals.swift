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

  /// Records, in the transaction that deletes a row, that its files may be removed.
  static func noteRemoval(of id: String, _ db: CatalogTransaction) throws {
    try db.run("INSERT INTO removals (id) VALUES (?) ON CONFLICT (id) DO NOTHING", [id])
  }

  /// Deletes the records of removals whose files are gone permanently.
  func forgetRemovals(_ ids: [String]) throws(StorageError) {
    guard !ids.isEmpty else { return }
    try write(.statementLocks) { db in
      for id in ids.sorted() { try db.run("DELETE FROM removals WHERE id = ?", [id]) }
    }
  }

  /// Returns the IDs removed since the last start.
  func removals() throws(StorageError) -> [String] {
    try read { try $0.rows("SELECT id FROM removals").map { try value($0, "id") } }
  }

  func claim(on id: RecordingID) throws(StorageError) -> Claim { try claim(on: id.text, in: "recordings") }

  /// Returns what the catalog knows about an upload's part file.
  func claim(on id: UploadID) throws(StorageError) -> Claim {
    let isFinished = try read { db in
      try db.first("SELECT recording IS NOT NULL FROM uploads WHERE id = ?", [id.text], as: Bool.self)
    }
    if isFinished == true { return .finished }
    return try claim(on: id.text, in: "uploads")
  }

  private func claim(on id: String, in table: String) throws(StorageError) -> Claim {
    try read { db in
      func has(_ table: String) throws -> Bool {
        try db.first("SELECT EXISTS (SELECT 1 FROM \(table) WHERE id = ?)", [id], as: Bool.self) ?? false
      }
      if try has(table) { return .owned }
      return try has("removals") ? .removed : .unknown
    }
  }
}
