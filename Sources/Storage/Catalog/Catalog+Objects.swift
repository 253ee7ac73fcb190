// For stores of media that can't be searched by folder, such as a bucket. There, an object may be removed only if a row
// named it as unneeded before: one of `garbage`, written before the object is put, or in the transaction that deletes
// the row that named it.
//
// Whatever names an object deletes its row of `garbage` in the same transaction (`withdraw`), which fails once that is
// due. A collection first takes what is due, by setting `due` to 0 (`takeGarbage`), then reads the rows that could name
// it, and only then removes the object. So a transaction that names an object is committed before the collection looks,
// or fails, however long a node was stopped in between and whatever the database's clock does. What a collection leaves
// because a recording's description names it is postponed, and could be named again. But what a description names has
// been named, by an attempt that has ended.

extension Catalog {
  /// How long after it was put, or what named it deleted, an object is looked at: after every request about it ended.
  static let settlingSeconds = 86_400.0

  /// From now on, each transaction that deletes a recording records which objects it had. Call this once, before the
  /// first change, if the store of media needs it.
  package func nameDeletedObjects() { namesDeletedObjects.store(true, ordering: .relaxed) }

  /// Records that objects may be put, which are unneeded unless a row names them in a day. Call this before they are.
  package func announce(_ keys: [ObjectKey]) throws(StorageError) { try announce(keys.map(\.description)) }

  /// Records that any objects of a bucket may be put. One that a collection has taken stays taken.
  func announce(_ keys: [String]) throws(StorageError) {
    try write(.statementLocks, isAudited: false) { db in
      let due = try now(db) + Self.settlingSeconds
      for key in Set(keys).sorted() {
        try db.run(
          """
          INSERT INTO garbage (object, due) VALUES (?, ?)
          ON CONFLICT (object) DO UPDATE SET due = excluded.due WHERE garbage.due > 0
          """, [key, due.milliseconds])
      }
    }
  }

  /// Deletes the announcements of objects that the transaction names, and of `others` that it may name. Throws
  /// `.objectMayBeGone` if an object wasn't announced or is due.
  func withdraw(_ named: [String], orAlso others: [String] = [], _ db: CatalogTransaction) throws {
    guard namesDeletedObjects.load(ordering: .relaxed) else { return }
    let now = try now(db).milliseconds
    for key in Set(named + others).sorted() {
      let count = try db.run("DELETE FROM garbage WHERE object = ? AND due > ?", [key, now])
      guard count == 1 || !named.contains(key) else { throw StorageError.objectMayBeGone(key: key) }
    }
  }

  /// Withdraws the records about objects that a recording's row names and `before` didn't.
  func withdraw(objectsOf recording: Recording, before: Recording? = nil, _ db: CatalogTransaction) throws {
    let keys = Set(recording.keys).subtracting(before?.keys ?? [])
    guard !keys.isEmpty else { return }
    try withdraw(keys.map(\.description), orAlso: keys.map(\.map.description), db)
  }

  /// Returns the objects of a recording that may exist although no row names them as part of it.
  package func announcedObjects(of id: RecordingID) throws(StorageError) -> [ObjectKey] {
    let folder = "recordings/\(id)"
    return try read { db in
      // "0" follows "/", and text is sorted by its bytes.
      try db.rows("SELECT object FROM garbage WHERE object > ? AND object < ?", [folder + "/", folder + "0"])
        .compactMap { ObjectKey(try value($0, "object")) }
    }
  }

  /// Returns the objects that a recording's rows name, even if they are damaged otherwise; none if it was deleted.
  package func namedObjects(of id: RecordingID) throws(StorageError) -> Set<ObjectKey> {
    try read { try Self.namedObjects(of: id, $0) }
  }

  static func namedObjects(of id: RecordingID, _ db: CatalogTransaction) throws -> Set<ObjectKey> {
    let row = try db.row("SELECT \(erasedColumns) FROM recordings WHERE id = ?", [id.text])
    guard let row else { return [] }
    return Set(try objects(of: id, row, db))
  }

  /// Returns those of some recordings that have no row, even a damaged one. Costs a query for 500 of them.
  package func missing(among ids: Set<RecordingID>) throws(StorageError) -> Set<RecordingID> {
    var missing = ids
    let names = ids.map(\.text)
    for start in stride(from: 0, to: names.count, by: 500) {
      let some = Array(names[start..<min(start + 500, names.count)])
      let places = Array(repeating: "?", count: some.count).joined(separator: ", ")
      let found = try read { db in
        try db.rows("SELECT id FROM recordings WHERE id IN (\(places))", some).map { try value($0, "id") as String }
      }
      for id in found.compactMap(RecordingID.init) { missing.remove(id) }
    }
    return missing
  }

  /// Returns the length and the SHA-256 that an object has according to the row that names it; nil if no row says
  /// anything.
  package func content(of key: ObjectKey) throws(StorageError) -> ExpectedObject? {
    let (id, name) = (key.recording.text, key.description)
    return try read { db in
      let row = try db.row(
        """
        SELECT bytes, sha256 FROM recordings WHERE id = ? AND audio_key = ? AND bytes IS NOT NULL AND sha256 IS NOT NULL
        UNION ALL SELECT working_bytes, working_sha256 FROM recordings
          WHERE id = ? AND working_key = ? AND working_bytes IS NOT NULL
        UNION ALL SELECT bytes, sha256 FROM conversions WHERE recording = ? AND key = ?
        """, [id, name, id, name, id, name])
      return try row.map {
        ExpectedObject(key: key, bytes: try value($0, "bytes"), sha256: try nullable($0, "sha256"))
      }
    }
  }

  /// Whether a recording's deletion was recorded and `forgetDeletion` hasn't been called since.
  package func isDeleted(_ id: RecordingID) throws(StorageError) -> Bool { try claim(on: id) == .removed }

  /// Deletes the record of a recording's deletion, once all its objects are gone.
  package func forgetDeletion(of id: RecordingID) throws(StorageError) { try forgetRemovals([id.text]) }

  /// Records which objects a deleted recording had, before its conversions are deleted.
  func noteObjects(of id: RecordingID, _ row: SQLRow?, at now: Timestamp, _ db: CatalogTransaction) throws {
    guard namesDeletedObjects.load(ordering: .relaxed) else { return }
    // Before their objects become garbage, as in `keep`.
    _ = try db.rows(
      "SELECT format FROM conversions WHERE recording = ? ORDER BY format\(db.dialect.changingRows)", [id.text])
    let objects = try Self.objects(of: id, row, db).map(\.description)
    for key in Set(objects).sorted() { try Self.addGarbage(key, due: now + Self.settlingSeconds, db) }
  }

  /// What a recording's row, with the columns `erasedColumns`, and those of its conversions name. A damaged row names
  /// what it can.
  private static func objects(of id: RecordingID, _ row: SQLRow?, _ db: CatalogTransaction) throws -> [ObjectKey] {
    func key(_ row: SQLRow?, _ column: String) -> ObjectKey? { row.flatMap { try? objectKey($0, column) } ?? nil }
    let keys = ["audio_key", "waveform_key", "working_key"].compactMap { key(row, $0) }
    let version = row.flatMap { try? value($0, "version") as Int64 }
    let conversions = try db.rows("SELECT key FROM conversions WHERE recording = ?", [id.text])
    return Recording.objects(of: id, keys, version: version) + conversions.compactMap { key($0, "key") }
  }
}

extension Recording {
  /// The objects that belong to the recording because of its row.
  package var objects: [ObjectKey] { Self.objects(of: id, keys, version: version) }

  /// The key of the recording's description.
  package var descriptionKey: ObjectKey { .description(of: id, version: version) }

  fileprivate var keys: [ObjectKey] { [audioKey, workingKey, waveformKey].compactMap { $0 } }

  fileprivate static func objects(of id: RecordingID, _ keys: [ObjectKey], version: Int64?) -> [ObjectKey] {
    let sounds = keys.filter { !$0.name.hasPrefix("waveform") }
    return keys + sounds.map(\.map) + (version.map { [.description(of: id, version: $0)] } ?? [])
  }

  /// The content of the recording's description.
  package var describedJSON: [UInt8] { RecordingDescription.json(of: self) }

  /// Whether a description, which may be hostile, says the same as the row.
  package func isDescribed(by bytes: [UInt8]) -> Bool {
    // Reading it takes four times as long as writing what it should be.
    bytes == describedJSON || RecordingDescription(json: bytes) == RecordingDescription(self)
  }

  /// Reads a description, which may be hostile. Fails if it isn't one.
  package init?(describedBy bytes: [UInt8]) {
    guard let description = RecordingDescription(json: bytes) else { return nil }
    self = description.recording
  }

  /// Maximum length of a description that is read, in bytes.
  package static var descriptionLimit: Int64 { RecordingDescription.byteLimit }
}
