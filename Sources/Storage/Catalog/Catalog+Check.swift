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
  /// recordings or bytes of uploads. Throws `.unfinishedMove` if a move is filling both.
  package func boundMedia() throws(StorageError) -> (id: String?, hasContent: Bool) {
    try read { db in
      let id = try db.first("SELECT id FROM media_folder", as: String.self)
      try Self.checkMoved(id)
      return (id, try Self.hasContent(db))
    }
  }

  private static func hasContent(_ db: CatalogTransaction) throws -> Bool {
    let sql = "SELECT EXISTS (SELECT 1 FROM recordings) OR EXISTS (SELECT 1 FROM upload_objects)"
    return try db.first(sql, as: Bool.self) == true
  }

  /// Binds the catalog to the media with an ID, unless it is bound. Returns the ID that it is bound to. Throws
  /// `.unfinishedMove` if a move is filling both.
  package func bind(toMedia id: String) throws(StorageError) -> String {
    try write(.statementLocks) { db in
      try db.run("INSERT INTO media_folder (id) VALUES (?) ON CONFLICT (one) DO NOTHING", [id])
      let bound = try db.first("SELECT id FROM media_folder", as: String.self)
      try Self.checkMoved(bound)
      return bound ?? id
    }
  }

  /// Returns the readable ones of at most `limit` rows of recordings, newest first, and what continues after them; nil
  /// at the end.
  func recordings(
    limit: Int, after place: String?
  ) throws(StorageError) -> (recordings: [Recording], next: String?) {
    try read { db in
      let condition = place == nil ? "" : "WHERE id < ?"
      let rows = try db.rows(
        "SELECT * FROM recordings \(condition) ORDER BY id DESC LIMIT \(limit)", place.map { [$0] } ?? [])
      let recordings = try Self.intact(rows) { try RecordingRow(row: $0).recording }
      return (recordings, Self.place(after: rows, limit: limit))
    }
  }

  /// Returns what continues after a page of rows: the last ID that can be read. Returns nil at the end.
  static func place(after rows: [SQLRow], limit: Int) -> String? {
    rows.count < limit ? nil : rows.reversed().lazy.compactMap { $0["id"].flatMap(String.init) }.first
  }

  /// Returns the recording; nil if there is none, or if its row can't be read: such rows are found by themselves.
  func readableRecording(_ id: RecordingID) throws(StorageError) -> Recording? {
    do { return try recording(id) } catch {
      if case .corrupt = error { return nil }
      throw error
    }
  }

  /// Returns the number of recordings' rows.
  func recordingCount() throws(StorageError) -> Int {
    try read { try $0.first("SELECT count(*) FROM recordings", as: Int.self) ?? 0 }
  }

  /// Returns a recording's sound in other formats.
  package func conversions(of id: RecordingID) throws(StorageError) -> [Conversion] {
    try read { db in
      try Self.intact(
        db.rows("SELECT * FROM conversions WHERE recording = ? ORDER BY format", [id.text])
      ) { try ConversionRow(row: $0).conversion }
    }
  }

  /// Returns the files with a recording's sound in other formats.
  func conversionFiles(of id: RecordingID) throws(StorageError) -> [String] {
    try conversions(of: id).map(\.key.name)
  }

  /// Returns the sounds in other formats of the recordings with IDs in a range, each recording's by format.
  func conversions(
    from first: RecordingID, through last: RecordingID
  ) throws(StorageError) -> [RecordingID: [Conversion]] {
    let conversions = try read { db in
      try Self.intact(
        db.rows(
          "SELECT * FROM conversions WHERE recording BETWEEN ? AND ? ORDER BY recording, format",
          [first.text, last.text])
      ) { try ConversionRow(row: $0).conversion }
    }
    return Dictionary(grouping: conversions, by: \.recording)
  }

  /// Returns the files that rows name of recordings that have their audio, by recording. `ids` are sorted.
  func filesNamed(of ids: ArraySlice<RecordingID>) throws(StorageError) -> [RecordingID: Set<String>] {
    guard let first = ids.first, let last = ids.last else { return [:] }
    return try read { db in
      var names: [RecordingID: Set<String>] = [:]
      // A column that can't be read names nothing.
      func add(_ column: String, of row: SQLRow) {
        guard let key = try? objectKey(row, column) else { return }
        names[key.recording]?.insert(key.name)
      }
      // Others between them are read in vain, but each once, because the ranges of one caller don't overlap.
      let range = [first.text, last.text]
      try db.eachRow(
        """
        SELECT id, audio_key, working_key, waveform_key, version FROM recordings
        WHERE id BETWEEN ? AND ? AND audio_key IS NOT NULL
        """, range
      ) { row in
        guard let id = try? identifier(row, "id") as RecordingID else { return true }
        names[id] = []
        if let version = try? value(row, "version") as Int64 {
          names[id]?.insert(ObjectKey.description(of: id, version: version).name)
        }
        for column in ["audio_key", "working_key", "waveform_key"] { add(column, of: row) }
        return true
      }
      try db.eachRow("SELECT key FROM conversions WHERE recording BETWEEN ? AND ?", range) { row in
        add("key", of: row)
        return true
      }
      return names
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
        try count("batches") { _ = try BatchRow(row: $0) },
        try count("noise_profiles") { _ = try KeptProfileRow(row: $0) },
      ].filter { $0.1 > 0 }
    }
  }
}
