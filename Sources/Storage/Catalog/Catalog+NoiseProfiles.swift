// Noise profiles that are kept. One that a queued or running job uses stays readable for that job after it is deleted:
// its row is only marked, and removed when the next profile is inserted or deleted after the job has ended.

import FoundationEssentials

extension Catalog {
  /// Returns at most `limit` profiles of a tenant older than `before`, newest first. A profile whose `spectrum` would
  /// bring their total over `byteLimit` ends the list, unless it's the first.
  package func noiseProfiles(
    of tenant: Tenant = .none, limit: Int, before: KeptProfileID? = nil, byteLimit: Int = .max
  ) throws(StorageError) -> [KeptProfile] {
    try read { db in
      var (found, bytes) = ([KeptProfile](), 0)
      var filter = Filter()
      filter.add("is_deleted = 0")
      filter.add("tenant = ?", tenant.name)
      if let before { filter.add("id < ?", before.text) }
      guard limit > 0 else { return [] }
      try db.eachRow("SELECT * FROM noise_profiles\(filter.text) ORDER BY id DESC", filter.arguments) { row in
        guard let profile = try Self.intact([row], { try KeptProfileRow(row: $0).profile }).first else { return true }
        bytes += profile.spectrum.count
        guard found.isEmpty || bytes <= byteLimit else { return false }
        found.append(profile)
        return found.count < limit
      }
      return found
    }
  }

  /// Returns a profile, or nil. With `evenDeleted`, also one that was deleted while a job uses it, for that job.
  package func noiseProfile(
    _ id: KeptProfileID, evenDeleted: Bool = false, of tenant: Tenant? = nil
  ) throws(StorageError) -> KeptProfile? {
    try read { try Self.noiseProfile(id, evenDeleted: evenDeleted, of: tenant, $0) }
  }

  /// Inserts a profile. Throws `.tooManyNoiseProfiles` if its tenant has `limit` already, `.limitReached` if the tenant
  /// would have more bytes than `limits`, and `.noSuchRecording` if the recording that it was learned from is gone.
  package func insert(
    _ profile: KeptProfile, limit: Int, within limits: StoredLimits? = nil
  ) throws(StorageError) {
    try write(.statementLocks) { db in
      if let source = profile.recording, try Self.held(source, db) == nil {
        throw StorageError.noSuchRecording(source)
      }
      try Self.forgetDeletedProfiles(db)
      try Self.lock(name: "profiles of \(profile.tenant.name)", db)
      let count =
        try db.first(
          "SELECT count(*) FROM noise_profiles WHERE tenant = ? AND is_deleted = 0", [profile.tenant.name], as: Int.self
        ) ?? 0
      guard count < limit else { throw StorageError.tooManyNoiseProfiles(limit: limit) }
      try KeptProfileRow(profile: profile).insert(db)
      try Self.checkBytes(limits, of: profile.tenant, db)
    }
  }

  /// Renames a profile. Returns it, or nil if there is none. Throws `.changedMeanwhile`, without any change, if
  /// `isExpected` returns false for the current profile.
  package func renameNoiseProfile(
    _ id: KeptProfileID, of tenant: Tenant? = nil, to name: String, if isExpected: @Sendable (KeptProfile) -> Bool
  ) throws(StorageError) -> KeptProfile? {
    try write(.statementLocks) { db in
      guard var profile = try Self.noiseProfile(id, of: tenant, by: db.dialect.changingRows, db) else { return nil }
      guard isExpected(profile) else { throw StorageError.changedMeanwhile }
      profile.name = name
      profile.version += 1
      profile.changedAt = max(time, profile.createdAt)
      try KeptProfileRow(profile: profile).update(db)
      return profile
    }
  }

  /// Deletes a profile; returns false if there is none. Throws `.changedMeanwhile`, without any change, if `isExpected`
  /// returns false for the current profile.
  package func deleteNoiseProfile(
    _ id: KeptProfileID, of tenant: Tenant? = nil, if isExpected: @Sendable (KeptProfile) -> Bool
  ) throws(StorageError) -> Bool {
    try write(.statementLocks) { db in
      guard let profile = try Self.noiseProfile(id, of: tenant, by: db.dialect.changingRows, db) else { return false }
      guard isExpected(profile) else { throw StorageError.changedMeanwhile }
      try db.run(
        "UPDATE noise_profiles SET is_deleted = 1 WHERE id = ? AND tenant = ?", [id.text, profile.tenant.name])
      try Self.forgetDeletedProfiles(db)
      return true
    }
  }

  /// Removes what profiles say about the recording that they were learned from, whose row is deleted in the same
  /// transaction.
  static func forgetSource(ofProfilesFrom recording: String, at now: Timestamp, _ db: CatalogTransaction) throws {
    try db.run(
      """
      UPDATE noise_profiles SET recording = NULL, noise = NULL, version = version + 1, changed_at = ?
      WHERE recording = ?
      """, [now.milliseconds, recording])
  }

  /// Removes deleted profiles that no unfinished job names in its parameters.
  private static func forgetDeletedProfiles(_ db: CatalogTransaction) throws {
    // Those that others have locked, because they delete the recording, can wait.
    let unused = try db.rows(
      """
      SELECT id FROM noise_profiles WHERE is_deleted <> 0 AND NOT EXISTS (
        SELECT 1 FROM jobs
        WHERE state IN ('queued', 'running') AND \(db.dialect.contains("jobs.parameters", other: "noise_profiles.id"))
      )\(db.dialect.skippingLocked)
      """)
    for row in unused { try db.erase("DELETE FROM noise_profiles WHERE id = ?", [row["id"]]) }
  }

  /// `lock` is one of the dialect's ends of a SELECT.
  private static func noiseProfile(
    _ id: KeptProfileID, evenDeleted: Bool = false, of tenant: Tenant? = nil, by lock: String = "",
    _ db: CatalogTransaction
  ) throws -> KeptProfile? {
    var filter = Filter(id: id.text, of: tenant)
    filter.add("is_deleted <= ?", evenDeleted)
    return try db.row("SELECT * FROM noise_profiles\(filter.text)\(lock)", filter.arguments)
      .map(KeptProfileRow.init(row:))?.profile
  }
}

/// A profile as a row of `noise_profiles`.
struct KeptProfileRow: TableRow {
  static let table = "noise_profiles"

  let profile: KeptProfile

  init(profile: KeptProfile) { self.profile = profile }

  init(row: SQLRow) throws {
    var profile = KeptProfile(
      id: try identifier(row, "id"), name: try value(row, "name"), recording: try optionalIdentifier(row, "recording"),
      noise: try nullable(row, "noise"), sampleRate: try nullable(row, "sample_rate"),
      channels: try value(row, "channels"), spectrum: try value(row, "spectrum"),
      createdAt: Timestamp(milliseconds: try value(row, "created_at")),
      changedAt: Timestamp(milliseconds: try value(row, "changed_at")))
    profile.tenant = try tenant(row)
    profile.version = try value(row, "version")
    self.profile = profile
    guard profile.createdAt.isPlausible, profile.changedAt.isPlausible, profile.channels > 0 else {
      throw StorageError.corrupt(column: "noise_profiles", value: profile.id.text)
    }
  }

  func encode(to container: inout ColumnValues) throws {
    container["id"] = profile.id.text
    container["tenant"] = profile.tenant.name
    container["name"] = profile.name
    container["recording"] = profile.recording?.text
    container["noise"] = profile.noise
    container["sample_rate"] = profile.sampleRate
    container["channels"] = profile.channels
    container["spectrum"] = profile.spectrum
    container["version"] = profile.version
    container["created_at"] = profile.createdAt.milliseconds
    container["changed_at"] = profile.changedAt.milliseconds
  }
}
