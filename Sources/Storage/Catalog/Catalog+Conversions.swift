extension Catalog {
  /// Returns the conversion of a recording to `format`, or nil; with a tenant, only of one of its recordings.
  package func conversion(
    of id: RecordingID, to format: String, of tenant: Tenant? = nil
  ) throws(StorageError) -> Conversion? {
    try read { try Self.conversion(of: id, to: format, of: tenant, $0) }
  }

  /// Returns the unfinished job for the same work if there is one; otherwise inserts `job` and returns it. So only one
  /// runs at a time, however many clients request it. `isNew` is whether `job` was inserted.
  ///
  /// Throws `.noSuchRecording` if the recording was deleted meanwhile, and `.limitReached` if the tenant would have
  /// more bytes than `limits` with those that the job is expected to add.
  package func sharedJob(
    orElse job: Job, of tenant: Tenant? = nil, within limits: StoredLimits? = nil
  ) throws(StorageError) -> (job: Job, isNew: Bool) {
    try write(.statementLocks) { db in
      // Another call for the same recording waits here, and then finds the job.
      guard let recording = try Self.locked(job.recording, of: tenant, db) else {
        throw StorageError.noSuchRecording(job.recording)
      }
      let same = try Self.unfinishedJobs(touching: job.recording, db).first {
        $0.kind == job.kind && $0.recording == job.recording && $0.parameters == job.parameters
      }
      if let same { return (same, false) }
      try plan(job, of: recording.tenant, within: limits, db)
      return (job, true)
    }
  }

  /// Inserts a conversion, replacing an older one to the same format, and deletes the least recently requested
  /// conversions of the same tenant until all of them together have at most `limit` bytes. In the same transaction,
  /// finishes the job of the attempt that made it, with `result` in JSON. Returns the job, and the objects of the
  /// deleted conversions. Throws `.limitReached`, without any change, if the tenant would have more bytes than
  /// `limits`.
  ///
  /// Those objects become garbage, in a bucket after an hour.
  package func keep(
    _ conversion: Conversion, limit: Int64, finishing token: AttemptToken, with result: String,
    within limits: StoredLimits? = nil
  ) throws(StorageError) -> (job: Fenced<Job>, discarded: [ObjectKey]) {
    try write(.statementLocks) { db in
      guard let (before, now) = try locked(token.job, db) else { return (.refused(nil), []) }
      let moved = try move(before, hasWritten: true, at: now, db) { $0.succeed(token, with: result, at: now) }
      // Deleting the recording would have canceled the job.
      guard moved.written != nil else { return (moved, []) }
      let discarded = try keep(conversion, of: before.tenant, limit: limit, at: now, db)
      try Self.checkBytes(limits, of: before.tenant, db)
      return (moved, discarded)
    }
  }

  /// Inserts a conversion as above. For tests.
  @discardableResult
  func keep(_ conversion: Conversion, of tenant: Tenant = .none, limit: Int64) throws(StorageError) -> [ObjectKey] {
    try write { try keep(conversion, of: tenant, limit: limit, at: now($0), $0) }
  }

  private func keep(
    _ conversion: Conversion, of tenant: Tenant, limit: Int64, at now: Timestamp, _ db: CatalogTransaction
  ) throws -> [ObjectKey] {
    // So that each sees what others have kept, and none waits for rows that another is about to change.
    try Self.lock(name: "conversions of \(tenant.name)", db)
    var discarded: [ObjectKey] = []
    let older = try Self.conversion(of: conversion.recording, to: conversion.format, db)
    if older?.key != conversion.key {
      if let older {
        try discard(older, at: now, db)
        discarded.append(older.key)
      }
      try withdraw([conversion.key.description], db)
    }
    // Also a row that can't be read. Not by replacing it, of which SQLite's triggers would see only one half.
    try db.run(
      "DELETE FROM conversions WHERE recording = ? AND format = ?", [conversion.recording.text, conversion.format])
    try ConversionRow(conversion: conversion, tenant: tenant).insert(db)
    // From here on the tenant's row of `usage` is locked, so a deletion of others' recordings holds none of their
    // conversions.
    let total =
      try db.first(
        "SELECT CAST(sum(bytes) AS bigint) FROM conversions WHERE tenant = ?", [tenant.name], as: Int64.self) ?? 0
    guard total > limit else { return discarded }
    // Those that are used least, up to the one with which there is room enough.
    let leastUsed = try Self.intact(
      db.rows(
        """
        SELECT * FROM (
          SELECT *, sum(bytes) OVER (ORDER BY used_at, recording, format) AS so_far
          FROM conversions WHERE tenant = ? AND NOT (recording = ? AND format = ?)) AS others
        WHERE so_far - bytes < ?
        """, [tenant.name, conversion.recording.text, conversion.format, total - limit])
    ) { try ConversionRow(row: $0).conversion }
    for conversion in leastUsed where try Self.isFree(conversion, db) {
      try discard(conversion, at: now, db)
      discarded.append(conversion.key)
    }
    return discarded
  }

  /// Locks a conversion, unless another transaction has: one that deletes its recording, or notes its use.
  private static func isFree(_ conversion: Conversion, _ db: CatalogTransaction) throws -> Bool {
    let condition = "recording = ? AND format = ? AND key = ?"
    return try db.row(
      "SELECT 1 AS free FROM conversions WHERE \(condition)\(db.dialect.skippingLocked)",
      [conversion.recording.text, conversion.format, conversion.key.description]) != nil
  }

  private func discard(_ conversion: Conversion, at now: Timestamp, _ db: CatalogTransaction) throws {
    try Self.forget(conversion, db)
    // A store may carry a repeated PUT out late, and the object would come back without a row. Folders don't.
    let isInBucket = namesDeletedObjects.load(ordering: .relaxed)
    try Self.addGarbage(conversion.key, due: isInBucket ? now + Self.supersededSeconds : now, db)
  }

  /// Records that a conversion was requested. Writes only if the last time recorded is more than an hour ago.
  package func touch(_ conversion: Conversion, of tenant: Tenant? = nil) throws(StorageError) {
    guard time.milliseconds - conversion.usedAt.milliseconds > 3_600_000 else { return }
    try write(.statementLocks) { db in
      var filter = Filter()
      filter.add("recording = ?", conversion.recording.text)
      filter.add("format = ?", conversion.format)
      filter.add(tenant)
      try db.run("UPDATE conversions SET used_at = ?\(filter.text)", [time.milliseconds] + filter.arguments)
    }
  }

  /// Deletes a conversion whose file is missing.
  package func forget(_ conversion: Conversion, of tenant: Tenant? = nil) throws(StorageError) {
    try write(.statementLocks) { db in
      // A deletion of the recording holds the counter, and would wait for the conversion.
      guard try Self.locked(conversion.recording, of: tenant, db) != nil else { return }
      try Self.forget(conversion, of: tenant, db)
    }
  }

  /// Deletes the conversions of a deleted recording; their files are removed with the recording's.
  static func forgetConversions(of id: String, _ db: CatalogTransaction) throws {
    try db.run("DELETE FROM conversions WHERE recording = ?", [id])
  }

  private static func forget(
    _ conversion: Conversion, of tenant: Tenant? = nil, _ db: CatalogTransaction
  ) throws {
    var filter = Filter()
    filter.add("recording = ?", conversion.recording.text)
    filter.add("format = ?", conversion.format)
    filter.add("key = ?", conversion.key.description)
    filter.add(tenant)
    try db.run("DELETE FROM conversions\(filter.text)", filter.arguments)
  }

  private static func conversion(
    of id: RecordingID, to format: String, of tenant: Tenant? = nil, _ db: CatalogTransaction
  ) throws -> Conversion? {
    var filter = Filter()
    filter.add("recording = ?", id.text)
    filter.add("format = ?", format)
    filter.add(tenant)
    // Ignores an unreadable row: the conversion is made again and replaces it.
    return try intact(
      db.rows("SELECT * FROM conversions\(filter.text)", filter.arguments)
    ) { try ConversionRow(row: $0).conversion }.first
  }
}

/// A conversion as a row of `conversions`.
struct ConversionRow: TableRow {
  static let table = "conversions"
  static let key = ["recording", "format"]

  let conversion: Conversion
  /// The recording's.
  let tenant: Tenant

  init(conversion: Conversion, tenant: Tenant) { (self.conversion, self.tenant) = (conversion, tenant) }

  init(row: SQLRow) throws {
    tenant = try Storage.tenant(row)
    guard let key = try objectKey(row, "key") else { throw StorageError.corrupt(column: "key", value: "NULL") }
    conversion = Conversion(
      recording: try identifier(row, "recording"), format: try value(row, "format"), key: key,
      bytes: try value(row, "bytes"), sha256: try value(row, "sha256"),
      usedAt: Timestamp(milliseconds: try value(row, "used_at")))
    guard key.recording == conversion.recording, key.name.hasPrefix("converted-"), conversion.bytes >= 0,
      conversion.usedAt.isPlausible
    else {
      throw StorageError.corrupt(column: "conversions", value: conversion.recording.text)
    }
  }

  func encode(to container: inout ColumnValues) throws {
    container["recording"] = conversion.recording.text
    container["tenant"] = tenant.name
    container["format"] = conversion.format
    container["key"] = conversion.key.description
    container["bytes"] = conversion.bytes
    container["sha256"] = conversion.sha256
    container["used_at"] = conversion.usedAt.milliseconds
  }
}
