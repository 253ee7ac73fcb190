// A description is replaced, so the order matters in which a store carries puts out. A put whose outcome is unknown,
// because it timed out or its connection broke, may be carried out after a later one, and undo it. So a row of
// `garbage` with the name
//
//   describe/<id>     describe this recording again, in a day: after every request about it ended
//
// is written then. It is also written before a put that comes late, and when a put by another node may be on its way:
// by a change or a collection that finds a promise. In a bucket, it isn't the row of the promise, which a later change
// of the recording fulfills.

extension Catalog {
  static let descriptionPrefix = "describe/"
  /// After this time, every request about a description has ended.
  static let doubtSeconds = 86_400.0

  /// Records that a put of a recording's description may be carried out later.
  package func doubtDescription(of id: RecordingID) throws(StorageError) {
    // Bypasses `write`, because it changes nothing that readers see.
    _ = try engine.write(.statementLocks) { session in
      let db = CatalogTransaction(session)
      try Self.addGarbage(Self.descriptionPrefix + id.text, due: try self.now(db) + Self.doubtSeconds, db)
    }
  }

  /// Whether a put of a recording's description may have undone a later one, and a node will describe it again.
  func isDescriptionDoubtful(of id: RecordingID) throws(StorageError) -> Bool {
    let name = Self.descriptionPrefix + id.text
    return try read { db in
      try db.first("SELECT EXISTS (SELECT 1 FROM garbage WHERE object = ?)", [name], as: Bool.self) == true
    }
  }

  /// Writes the descriptions in a folder of several nodes that a node hasn't written within a minute, or that are in
  /// doubt. Blocks on the disk.
  func describeOverdue(limit: Int = 1000) throws(StorageError) {
    let names = try read { db in
      try db.rows(
        "SELECT object FROM garbage WHERE due <= ? AND \(Self.isDescription) ORDER BY due, object LIMIT ?",
        [try now(db).milliseconds, limit]
      ).map { try value($0, "object") as String }
    }
    for name in names {
      let id = RecordingID(String(name.dropFirst(Self.descriptionPrefix.count)))
      if let id, try recording(id) != nil {
        describe(id)
      } else {
        // The recording was deleted. Bypasses `write`, because it changes nothing that readers see.
        _ = try engine.write(.statementLocks) { session in
          try CatalogTransaction(session).run("DELETE FROM garbage WHERE object = ?", [name])
        }
      }
    }
  }

  private static func exists(_ id: RecordingID, _ db: CatalogTransaction) throws -> Bool {
    try db.first("SELECT EXISTS (SELECT 1 FROM recordings WHERE id = ?)", [id.text], as: Bool.self) == true
  }

  private static var isDescription: String {
    "substr(object, 1, \(descriptionPrefix.count)) = '\(descriptionPrefix)'"
  }

  /// Promises the descriptions that have been in doubt for a day, at most about `limit`: from now on, they are due.
  /// Returns how many there were, and whose no node was writing.
  ///
  /// One that is promised already may have another put on its way, so it stays in doubt for a day more.
  package func promiseDoubtfulDescriptions(
    limit: Int = 1000
  ) throws(StorageError) -> (count: Int, settled: [RecordingID]) {
    let condition = "due <= ? AND \(Self.isDescription)"
    let isAny = try read { db in
      try db.first(
        "SELECT EXISTS (SELECT 1 FROM garbage WHERE \(condition))", [try now(db).milliseconds], as: Bool.self)
    }
    // Usually there are none, and nothing is written.
    guard isAny == true else { return (0, []) }
    return try engine.write(.statementLocks) { session in
      let db = CatalogTransaction(session)
      let now = try self.now(db)
      let rows = try db.rows(
        """
        DELETE FROM garbage WHERE object IN (
          SELECT object FROM garbage WHERE \(condition) ORDER BY object LIMIT ?\(db.dialect.skippingLocked))
        RETURNING object
        """, [now.milliseconds, limit])
      let names = try rows.map { row in try value(row, "object") as String }
      let doubted = names.sorted().compactMap { RecordingID(String($0.dropFirst(Self.descriptionPrefix.count))) }
      var settled: [RecordingID] = []
      for id in doubted where try Self.exists(id, db) {
        let count = try db.run(
          "INSERT INTO garbage (object, due) VALUES (?, ?) ON CONFLICT (object) DO NOTHING",
          [ObjectKey.description(of: id).description, now.milliseconds])
        if count == 1 {
          settled.append(id)
        } else {
          try Self.addGarbage(Self.descriptionPrefix + id.text, due: now + Self.doubtSeconds, db)
        }
      }
      return (names.count, settled)
    }
  }
}
