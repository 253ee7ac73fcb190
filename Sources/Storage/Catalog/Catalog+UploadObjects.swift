// The bytes of unfinished uploads in a store without folders. A row of `garbage` is written before each object is put
// (`announce`), and one of `upload_objects` names it once it counts (`advance`). A transaction that names a longer
// object in place of several short ones makes those garbage, and the one that ends the upload all that it has. So
// whatever a node that dies leaves is found a day later.

extension Catalog {
  /// Records that objects may be put, which are unneeded unless their upload's row names them in a day. Call this
  /// before they are.
  package func announce(_ objects: [UploadObject]) throws(StorageError) {
    try announce(objects.map(\.key))
  }

  /// Returns the objects that have the bytes of an unfinished upload up to its offset, in order.
  package func objects(of id: UploadID) throws(StorageError) -> [UploadObject] {
    try read { try Self.objects(of: id, $0) }
  }

  /// Returns the objects of an unfinished upload, in order; nil unless they have exactly its first `count` bytes.
  package func objects(of id: UploadID, upTo count: Int64) throws(StorageError) -> [UploadObject]? {
    let objects = try objects(of: id)
    var place: Int64 = 0
    for object in objects {
      guard object.start == place else { return nil }
      place = object.end
    }
    return place == count ? objects : nil
  }

  static func objects(of id: UploadID, _ db: CatalogTransaction) throws -> [UploadObject] {
    try db.rows("SELECT start, bytes, name FROM upload_objects WHERE upload = ? ORDER BY start", [id.text]).map {
      UploadObject(
        upload: id, name: try value($0, "name"), start: try value($0, "start"), bytes: try value($0, "bytes"))
    }
  }

  /// Names objects as parts of their upload. Those that they take the place of become unneeded.
  func add(_ objects: [UploadObject], _ db: CatalogTransaction) throws {
    guard let first = objects.min(by: { $0.start < $1.start }) else { return }
    let replaced = try db.rows(
      "DELETE FROM upload_objects WHERE upload = ? AND start >= ? RETURNING name", [first.upload.text, first.start]
    ).map { try value($0, "name") as String }
    let keys = replaced.map { "uploads/\(first.upload.text)/\($0)" }
    try Self.addGarbage(keys, due: try now(db) + Self.settlingSeconds, db)
    for object in objects {
      try db.run(
        "INSERT INTO upload_objects (upload, start, bytes, name) VALUES (?, ?, ?, ?)",
        [object.upload.text, object.start, object.bytes, object.name])
    }
    try withdraw(objects.map(\.key), db)
  }

  /// Returns the objects of an upload that is about to end; none if the media are in a folder.
  func objectsToRelease(of id: UploadID, _ db: CatalogTransaction) throws -> [UploadObject] {
    namesDeletedObjects.load(ordering: .relaxed) ? try Self.objects(of: id, db) : []
  }

  /// Records that the objects of an upload that has ended are unneeded.
  func release(_ objects: [UploadObject], _ db: CatalogTransaction) throws {
    guard let id = objects.first?.upload else { return }
    try Self.addGarbage(objects.map(\.key), due: try now(db) + Self.settlingSeconds, db)
    try db.run("DELETE FROM upload_objects WHERE upload = ?", [id.text])
  }

  // MARK: Collecting

  /// What a row of `garbage` names of an upload.
  package struct UnneededUploadObject: Sendable, Hashable {
    /// The upload.
    package let upload: UploadID
    /// The object's name among those of the upload.
    package let name: String

    fileprivate init?(_ key: String) {
      let parts = key.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 3, parts[0] == "uploads", let upload = UploadID(parts[1]), MediaStore.isFileName(parts[2])
      else { return nil }
      (self.upload, name) = (upload, parts[2])
    }

    /// The key in the bucket.
    package var key: String { "uploads/\(upload.text)/\(name)" }
  }

  /// Returns the objects of an upload that were announced, or released at its end, and that its row doesn't name.
  package func unneededObjects(of id: UploadID) throws(StorageError) -> [UnneededUploadObject] {
    try read { db in
      let named = Set(try Self.objects(of: id, db).map(\.name))
      // "0" follows "/", and text is sorted by its bytes.
      return try db.rows(
        "SELECT object FROM garbage WHERE object > ? AND object < ?", ["uploads/\(id.text)/", "uploads/\(id.text)0"]
      ).compactMap { UnneededUploadObject(try value($0, "object")) }.filter { !named.contains($0.name) }
    }
  }

  /// Takes what may be removed now of uploads, at most `limit` rows, so that no transaction can name it any more.
  /// Unreadable rows are skipped.
  package func takeUploadObjects(limit: Int = 1000) throws(StorageError) -> [UnneededUploadObject] {
    // Usually there are none, and nothing is written.
    guard try !dueUploadObjects(limit: 1).isEmpty else { return [] }
    return try take("uploads/", limit: limit).compactMap { UnneededUploadObject($0) }
  }

  /// Returns what may be removed now of uploads, at most `limit` rows. Unreadable rows are skipped.
  package func dueUploadObjects(limit: Int = 1000) throws(StorageError) -> [UnneededUploadObject] {
    try read { db in
      try db.rows(
        """
        SELECT object FROM garbage WHERE due <= ? AND substr(object, 1, 8) = 'uploads/'
        ORDER BY due, object LIMIT ?
        """, [try now(db).milliseconds, limit]
      ).compactMap { UnneededUploadObject(try value($0, "object")) }
    }
  }

  /// Deletes the records of what has been removed or is named now, except of objects that were recorded again
  /// meanwhile.
  package func forget(_ removed: [UnneededUploadObject]) throws(StorageError) {
    try write(.statementLocks) { db in
      let now = try now(db).milliseconds
      for object in removed.sorted(by: { $0.key < $1.key }) {
        try db.run("DELETE FROM garbage WHERE object = ? AND due <= ?", [object.key, now])
      }
    }
  }

  /// Deletes the records of deletions that have left nothing to remove. Only if the media are in a store without
  /// folders.
  package func forgetSettledDeletions() throws(StorageError) {
    try write(.statementLocks) { db in
      func isSettled(_ folder: String) -> String {
        """
        NOT EXISTS (
          SELECT 1 FROM garbage
          WHERE object > '\(folder)/' || removals.id || '/' AND object < '\(folder)/' || removals.id || '0')
        """
      }
      try Self.sweep("removals", where: "\(isSettled("recordings")) AND \(isSettled("uploads"))", [], db)
    }
  }
}

/// A multipart upload that hasn't ended as far as the catalog knows. Its parts take room, but aren't shown.
package struct UnfinishedMultipart: Sendable, Hashable {
  fileprivate static let prefix = "multipart/"

  /// The key of the object that it is to become.
  package let key: String
  /// The store's name for it.
  package let id: String

  /// Describes an upload.
  package init(key: String, id: String) { (self.key, self.id) = (key, id) }

  /// Reads the name in a row of `garbage`: multipart/<key>?<id>.
  fileprivate init?(_ name: String) {
    guard name.hasPrefix(Self.prefix), let mark = name.firstIndex(of: "?") else { return nil }
    self.init(
      key: String(name[..<mark].dropFirst(Self.prefix.count)), id: String(name[name.index(after: mark)...]))
  }

  fileprivate var name: String { "\(Self.prefix)\(key)?\(id)" }
}

extension Catalog {
  /// Records that a multipart upload was begun, which is to be aborted unless it has ended in a day.
  package func announce(_ upload: UnfinishedMultipart) throws(StorageError) { try announce([upload.name]) }

  /// Returns at most `limit` multipart uploads that are to be aborted.
  package func takeMultiparts(limit: Int = 1000) throws(StorageError) -> [UnfinishedMultipart] {
    let prefix = UnfinishedMultipart.prefix
    let due = try read { db in
      try db.first(
        "SELECT EXISTS (SELECT 1 FROM garbage WHERE due <= ? AND substr(object, 1, 10) = '\(prefix)')",
        [try now(db).milliseconds], as: Bool.self)
    }
    // Usually there are none, and nothing is written.
    guard due == true else { return [] }
    return try take(prefix, limit: limit).compactMap { UnfinishedMultipart($0) }
  }

  /// Deletes the records of multipart uploads that have ended.
  package func forget(_ uploads: [UnfinishedMultipart]) throws(StorageError) {
    guard !uploads.isEmpty else { return }
    try write(.statementLocks) { db in
      for upload in uploads.sorted(by: { $0.name < $1.name }) {
        try db.run("DELETE FROM garbage WHERE object = ?", [upload.name])
      }
    }
  }
}
