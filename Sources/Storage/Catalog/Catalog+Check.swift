// Queries used only for checking.

extension Catalog {
  /// Binds a catalog that processes share to the folder with its media, which the first of them has chosen. Throws
  /// `.otherMedia` if it belongs to another folder, or is empty although the folder isn't.
  package func bind(to store: MediaStore) throws(StorageError) {
    let (id, isNew) = try store.sharedID()
    let isEmpty = try read { db in
      try db.first("SELECT EXISTS (SELECT 1 FROM media_folder)", as: Bool.self) != true
        && !Self.hasContent(db)
    }
    if !isNew, isEmpty, try store.hasRecordings() { throw .otherMedia(path: store.directory) }
    guard try bind(toMedia: id) == id else { throw .otherMedia(path: store.directory) }
  }

  /// Returns the ID of the media that the catalog describes, nil if it isn't bound to any, and whether it has
  /// recordings or bytes of uploads.
  package func boundMedia() throws(StorageError) -> (id: String?, hasContent: Bool) {
    try read { db in
      (try db.first("SELECT id FROM media_folder", as: String.self), try Self.hasContent(db))
    }
  }

  private static func hasContent(_ db: CatalogTransaction) throws -> Bool {
    let sql = "SELECT EXISTS (SELECT 1 FROM recordings) OR EXISTS (SELECT 1 FROM upload_objects)"
    return try db.first(sql, as: Bool.self) == true
  }

  /// Binds the catalog to the media with an ID, unless it is bound. Returns the ID that it is bound to.
  package func bind(toMedia id: String) throws(StorageError) -> String {
    try write(.statementLocks) { db in
      try db.run("INSERT INTO media_folder (id) VALUES (?) ON CONFLICT (one) DO NOTHING", [id])
      return try db.first("SELECT id FROM media_folder", as: String.self) ?? id
    }
  }

  /// Returns the files with a recording's sound in other formats.
  func conversionFiles(of id: RecordingID) throws(StorageError) -> [String] {
    try read { db in
      try Self.intact(
        db.rows("SELECT * FROM conversions WHERE recording = ?", [id.text])
      ) { try ConversionRow(row: $0).conversion.key.name }
    }
  }

  /// Returns the number of unreadable rows per table, except recordings (see `unreadableRecordings`). Reads every row.
  func unreadableCounts() throws(StorageError) -> [(table: String, count: Int)] {
    try read { db in
      func count(_ table: String, _ make: (SQLRow) throws -> Void) throws -> (String, Int) {
        var count = 0
        try db.eachRow("SELECT * FROM \(table)") { row in
          do { try make(row) } catch { count += 1 }
          return true
        }
        return (table, count)
      }
      return [
        try count("jobs") { _ = try JobRow(row: $0) }, try count("uploads") { _ = try UploadRow(row: $0) },
        try count("conversions") { _ = try ConversionRow(row: $0) },
        try count("label_tracks") { _ = try LabelTrackRow(row: $0) },
        try count("noise_profiles") { _ = try KeptProfileRow(row: $0) },
      ].filter { $0.1 > 0 }
    }
  }
}
