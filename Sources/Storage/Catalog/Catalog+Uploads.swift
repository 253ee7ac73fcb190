extension Catalog {
  /// Inserts an upload. Throws `.tooManyUploadsOfClient` or `.tooManyUploads`, without inserting it, if a limit on
  /// unfinished uploads is reached, and `.tokenIsSpent` if `token` was used before.
  package func insert(
    _ upload: Upload, limits: UploadLimits, spending token: UploadToken? = nil
  ) throws(StorageError) {
    try write { db in
      try Self.spend(token, db)
      let open = try Self.openUploads(db)
      guard open[upload.client] ?? 0 < limits.perClient else {
        throw StorageError.tooManyUploadsOfClient(limit: limits.perClient)
      }
      guard open.values.reduce(0, +) < limits.total else { throw StorageError.tooManyUploads(limit: limits.total) }
      try UploadRow(upload: upload).insert(db)
    }
  }

  /// Returns uploads without durable bytes that may be removed to make room for a new one of `client`: those of clients
  /// with more unfinished uploads than it has, starting with the client that has the most, oldest first.
  package func emptyUploads(givingWayTo client: String) throws(StorageError) -> [Upload] {
    try read { db in
      let open = try Self.openUploads(db)
      let own = open[client] ?? 0
      let empty = try Self.intact(
        db.rows(#"SELECT * FROM uploads WHERE recording IS NULL AND "offset" = 0 ORDER BY id"#)
      ) { try UploadRow(row: $0).upload }
      func held(_ upload: Upload) -> Int { open[upload.client] ?? 0 }
      // The sort is stable, so each client's oldest upload comes first.
      return empty.filter { held($0) > own + 1 }.sorted { held($0) > held($1) }
    }
  }

  /// Returns the number of unfinished uploads of each client.
  private static func openUploads(_ db: CatalogTransaction) throws -> [String: Int] {
    let rows = try db.rows("SELECT client, COUNT(*) AS held FROM uploads WHERE recording IS NULL GROUP BY client")
    return Dictionary(try rows.map { (try value($0, "client"), try value($0, "held")) }) { $1 }
  }

  /// Returns the upload, or nil.
  package func upload(_ id: UploadID) throws(StorageError) -> Upload? { try upload(id, of: nil) }

  /// Returns the upload if it is `tenant`'s; with nil, any tenant's.
  func upload(_ id: UploadID, of tenant: Tenant?) throws(StorageError) -> Upload? {
    try read { try Self.upload(id, of: tenant, $0) }
  }

  /// Records an upload's offset and expiry. The bytes up to the offset must already be durable.
  ///
  /// `objects` are those that have the bytes since the last time. Throws `.noSuchUpload` if it was deleted, and
  /// `.uploadTakenOver` if `writer` isn't its writer any more.
  package func advance(
    _ id: UploadID, of tenant: Tenant? = nil, to offset: Int64, expiresAt: Timestamp, by writer: Int = 0,
    adding objects: [UploadObject] = []
  ) throws(StorageError) {
    try write { db in
      guard var upload = try Self.upload(id, of: tenant, db) else { throw StorageError.noSuchUpload(id) }
      guard upload.advance(to: offset, by: writer) else { throw StorageError.uploadTakenOver(id) }
      try db.run(
        #"UPDATE uploads SET "offset" = ?, expires_at = ? WHERE id = ? AND tenant = ?"#,
        [offset, expiresAt.milliseconds, id.text, upload.tenant.name])
      try add(objects, db)
    }
  }

  /// Records the length of an upload that was begun without one. Throws `.noSuchUpload` if it was deleted, and
  /// `.changedMeanwhile` if it has a length, or more bytes.
  package func announce(_ length: Int64, of id: UploadID, of tenant: Tenant? = nil) throws(StorageError) {
    try write { db in
      guard let upload = try Self.upload(id, of: tenant, db) else { throw StorageError.noSuchUpload(id) }
      guard upload.length == nil, upload.offset <= length else { throw StorageError.changedMeanwhile }
      try db.run(
        "UPDATE uploads SET length = ? WHERE id = ? AND tenant = ?", [length, id.text, upload.tenant.name])
    }
  }

  /// Makes the caller the writer of an unfinished upload whose durable bytes end at `offset`, and names the segment
  /// that it is about to begin there. What the former writer records from now on is refused. Returns the upload.
  ///
  /// Throws `.noSuchUpload` if it was deleted or has become a recording, and `.changedMeanwhile` if it has another
  /// offset.
  package func takeOver(
    _ id: UploadID, of tenant: Tenant? = nil, at offset: Int64
  ) throws(StorageError) -> Upload {
    try write { db in
      guard var upload = try Self.upload(id, of: tenant, db), upload.recording == nil else {
        throw StorageError.noSuchUpload(id)
      }
      guard upload.takeOver(at: offset) else { throw StorageError.changedMeanwhile }
      try db.run(
        "UPDATE uploads SET writer = ? WHERE id = ? AND tenant = ?", [upload.writer, id.text, upload.tenant.name])
      // A segment that begins here has no bytes that count.
      try db.run("DELETE FROM upload_segments WHERE upload = ? AND start >= ?", [id.text, offset])
      try db.run(
        "INSERT INTO upload_segments (upload, start, writer) VALUES (?, ?, ?)", [id.text, offset, upload.writer])
      return upload
    }
  }

  /// Returns the segments of an upload, in order; the first begins at 0.
  package func segments(of id: UploadID) throws(StorageError) -> [UploadSegment] {
    try read { db in
      var segments: [UploadSegment] = []
      for row in try db.rows("SELECT start, writer FROM upload_segments WHERE upload = ? ORDER BY start", [id.text]) {
        segments.append(UploadSegment(upload: id, start: try value(row, "start"), writer: try value(row, "writer")))
      }
      return segments.first?.start == 0 ? segments : [UploadSegment(upload: id, start: 0, writer: 0)] + segments
    }
  }

  /// Inserts the recording that an upload became, with its jobs, and marks the upload as finished, in one transaction.
  ///
  /// Throws `.limitReached` if the tenant would have more than `limits`, and `.noSuchUpload` if the upload was deleted
  /// or has already become a recording. So however often a client completes an upload, it becomes one recording.
  package func insert(
    _ recording: Recording, jobs: [Job], finishing id: UploadID, of tenant: Tenant? = nil, expiresAt: Timestamp,
    within limits: StoredLimits? = nil
  ) throws(StorageError) {
    try write(.statementLocks) { db in
      guard var upload = try Self.upload(id, of: tenant, by: db.dialect.changingRows, db),
        upload.finish(as: recording.id)
      else { throw StorageError.noSuchUpload(id) }
      try db.run(
        "UPDATE uploads SET recording = ?, expires_at = ? WHERE id = ? AND tenant = ?",
        [recording.id.text, expiresAt.milliseconds, id.text, upload.tenant.name])
      try release(objectsToRelease(of: id, db), db)
      var recording = recording
      recording.tenant = upload.tenant
      try RecordingRow(recording).insert(db)
      try withdraw(objectsOf: recording, db)
      try Self.check(limits, of: recording.tenant, planning: jobs, db)
      for job in jobs { try queue(job, of: recording.tenant, db) }
    }
  }

  /// Deletes an upload and stores `answer`, if given, in its place. Returns false if it was already deleted.
  /// Afterwards, the caller must remove its part file.
  ///
  /// With `instant`, deletes it only if it expired before that; with `writer`, only if that is still its writer and it
  /// hasn't become a recording and, with `ifEmpty`, has no bytes.
  @discardableResult
  package func deleteUpload(
    _ id: UploadID, of owner: Tenant? = nil, keeping answer: StoredResponse? = nil,
    ifExpiredBefore instant: Timestamp? = nil, unfinishedBy writer: Int? = nil, ifEmpty: Bool = false
  ) throws(StorageError) -> Bool {
    try write { db in
      if let writer {
        guard let upload = try Self.upload(id, of: owner, db), upload.mayBeRefused(by: writer),
          upload.offset == 0 || !ifEmpty
        else { return false }
      }
      let latest = instant?.milliseconds ?? .max
      let objects = try objectsToRelease(of: id, db)
      var filter = Filter(id: id.text, of: owner)
      filter.add("expires_at < ?", latest)
      let deleted = try db.eraseReturning("DELETE FROM uploads\(filter.text) RETURNING tenant", filter.arguments)
      guard let row = deleted.first else { return false }
      try release(objects, db)
      try Self.noteRemoval(of: id.text, db)
      try keep(answer, for: try tenant(row), db)
      return true
    }
  }

  /// Returns uploads that expired before `instant`, in no particular order.
  package func uploads(expiredBefore instant: Timestamp) throws(StorageError) -> [Upload] {
    try read { db in
      try Self.intact(
        db.rows("SELECT * FROM uploads WHERE expires_at < ?", [instant.milliseconds])
      ) { try UploadRow(row: $0).upload }
    }
  }

  /// Returns the uploads that haven't become recordings, which have a part file, in no particular order.
  package func unfinishedUploads() throws(StorageError) -> [Upload] {
    try read { db in
      try Self.intact(db.rows("SELECT * FROM uploads WHERE recording IS NULL")) {
        try UploadRow(row: $0).upload
      }
    }
  }

  /// `lock` is one of the dialect's ends of a SELECT.
  private static func upload(
    _ id: UploadID, of tenant: Tenant? = nil, by lock: String = "", _ db: CatalogTransaction
  ) throws -> Upload? {
    let filter = Filter(id: id.text, of: tenant)
    return try db.row("SELECT * FROM uploads\(filter.text)\(lock)", filter.arguments).map(UploadRow.init(row:))?.upload
  }
}

/// An upload as a row of `uploads`.
struct UploadRow: TableRow {
  static let table = "uploads"

  let upload: Upload

  init(upload: Upload) { self.upload = upload }

  init(row: SQLRow) throws {
    var upload = Upload(
      id: try identifier(row, "id"), length: try nullable(row, "length"), offset: try value(row, "offset"),
      metadata: try nullable(row, "metadata"), concatenation: try nullable(row, "concatenation"),
      expiresAt: Timestamp(milliseconds: try value(row, "expires_at")),
      recording: try optionalIdentifier(row, "recording"), writer: try value(row, "writer"),
      client: try value(row, "client"),
      token: try nullable(row, "token"))
    upload.tenant = try tenant(row)
    self.upload = upload
    let length = upload.length ?? .max
    guard length >= 1, (0...length).contains(upload.offset), upload.expiresAt.isPlausible else {
      throw StorageError.corrupt(column: "uploads", value: upload.id.text)
    }
  }

  func encode(to container: inout ColumnValues) throws {
    container["id"] = upload.id.text
    container["tenant"] = upload.tenant.name
    container["length"] = upload.length
    container["offset"] = upload.offset
    container["metadata"] = upload.metadata
    container["concatenation"] = upload.concatenation
    container["expires_at"] = upload.expiresAt.milliseconds
    container["recording"] = upload.recording?.text
    container["writer"] = upload.writer
    container["client"] = upload.client
    container["token"] = upload.token
  }
}
