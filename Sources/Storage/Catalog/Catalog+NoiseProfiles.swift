// Noise profiles that are kept. One that a queued or running job uses stays readable for that job after it is deleted:
// its row is only marked, and removed when the next profile is inserted or deleted after the job has ended.

import FoundationEssentials
import GRDB

extension Catalog {
  /// Returns at most `limit` profiles of a tenant older than `before`, newest first. A profile whose `spectrum` would
  /// bring their total over `byteLimit` ends the list, unless it's the first.
  package func noiseProfiles(
    of tenant: Tenant = .none, limit: Int, before: KeptProfileID? = nil, byteLimit: Int = .max
  ) throws(StorageError) -> [KeptProfile] {
    try read { db in
      var (found, bytes) = ([KeptProfile](), 0)
      let rows = try Row.fetchCursor(
        db.cachedStatement(
          sql: """
            SELECT * FROM noise_profiles
            WHERE NOT is_deleted AND tenant = :tenant AND (:before IS NULL OR id < :before) ORDER BY id DESC
            """),
        arguments: ["tenant": tenant.name, "before": before?.text])
      while found.count < limit, let row = try rows.next() {
        guard let profile = try Self.intact([row], { try KeptProfileRow(row: $0).profile }).first else { continue }
        bytes += profile.spectrum.count
        guard found.isEmpty || bytes <= byteLimit else { break }
        found.append(profile)
      }
      return found
    }
  }

  /// Returns a profile, or nil. With `evenDeleted`, also one that was deleted while a job uses it, for that job.
  package func noiseProfile(_ id: KeptProfileID, evenDeleted: Bool = false) throws(StorageError) -> KeptProfile? {
    try read { try Self.noiseProfile(id, evenDeleted: evenDeleted, $0) }
  }

  /// Inserts a profile. Throws `.tooManyNoiseProfiles` if its tenant has `limit` already, `.limitReached` if the tenant
  /// would have more bytes than `limits`, and `.noSuchRecording` if the recording that it was learned from is gone.
  package func insert(
    _ profile: KeptProfile, limit: Int, within limits: StoredLimits? = nil
  ) throws(StorageError) {
    try write { db in
      try Self.forgetDeletedProfiles(db)
      if let source = profile.recording, try Self.recording(source, db) == nil {
        throw StorageError.noSuchRecording(source)
      }
      let count =
        try Int.fetchOne(
          db, sql: "SELECT count(*) FROM noise_profiles WHERE tenant = ? AND NOT is_deleted",
          arguments: [profile.tenant.name]) ?? 0
      guard count < limit else { throw StorageError.tooManyNoiseProfiles(limit: limit) }
      try KeptProfileRow(profile: profile).insert(db)
      try Self.checkBytes(limits, of: profile.tenant, db)
    }
  }

  /// Renames a profile. Returns it, or nil if there is none. Throws `.changedMeanwhile`, without any change, if
  /// `isExpected` returns false for the current profile.
  package func renameNoiseProfile(
    _ id: KeptProfileID, to name: String, if isExpected: (KeptProfile) -> Bool
  ) throws(StorageError) -> KeptProfile? {
    try write { db in
      guard var profile = try Self.noiseProfile(id, db) else { return nil }
      guard isExpected(profile) else { throw StorageError.changedMeanwhile }
      profile.name = name
      profile.version += 1
      profile.changedAt = .now
      try KeptProfileRow(profile: profile).update(db)
      return profile
    }
  }

  /// Deletes a profile; returns false if there is none. Throws `.changedMeanwhile`, without any change, if `isExpected`
  /// returns false for the current profile.
  package func deleteNoiseProfile(
    _ id: KeptProfileID, if isExpected: (KeptProfile) -> Bool
  ) throws(StorageError) -> Bool {
    try write { db in
      guard let profile = try Self.noiseProfile(id, db) else { return false }
      guard isExpected(profile) else { throw StorageError.changedMeanwhile }
      try db.execute(sql: "UPDATE noise_profiles SET is_deleted = 1 WHERE id = ?", arguments: [id.text])
      try Self.forgetDeletedProfiles(db)
      return true
    }
  }

  /// Removes what profiles say about the recording that they were learned from, whose row is deleted in the same
  /// transaction.
  static func forgetSource(ofProfilesFrom recording: String, _ db: Database) throws {
    try db.cachedStatement(
      sql: """
        UPDATE noise_profiles SET recording = NULL, noise = NULL, version = version + 1, changed_at = ?
        WHERE recording = ?
        """
    ).execute(arguments: [Timestamp.now.milliseconds, recording])
  }

  /// Removes deleted profiles that no unfinished job names in its parameters.
  private static func forgetDeletedProfiles(_ db: Database) throws {
    try db.execute(
      sql: """
        DELETE FROM noise_profiles WHERE is_deleted AND NOT EXISTS (
          SELECT 1 FROM jobs
          WHERE state IN ('queued', 'running') AND instr(jobs.parameters, noise_profiles.id) > 0)
        """)
  }

  private static func noiseProfile(
    _ id: KeptProfileID, evenDeleted: Bool = false, _ db: Database
  ) throws -> KeptProfile? {
    try KeptProfileRow.fetchOne(
      db.cachedStatement(sql: "SELECT * FROM noise_profiles WHERE id = ? AND (? OR NOT is_deleted)"),
      arguments: [id.text, evenDeleted])?.profile
  }
}

/// A profile as a row of `noise_profiles`.
struct KeptProfileRow: FetchableRecord, PersistableRecord {
  static let databaseTableName = "noise_profiles"

  let profile: KeptProfile

  init(profile: KeptProfile) { self.profile = profile }

  init(row: Row) throws {
    var profile = KeptProfile(
      id: try identifier(row, "id"), name: try value(row, "name"), recording: try optionalIdentifier(row, "recording"),
      noise: try nullable(row, "noise"), sampleRate: try nullable(row, "sample_rate"),
      channels: try value(row, "channels"), spectrum: Array(try value(row, "spectrum") as Data),
      createdAt: Timestamp(milliseconds: try value(row, "created_at")),
      changedAt: Timestamp(milliseconds: try value(row, "changed_at")))
    profile.tenant = try tenant(row)
    profile.version = try value(row, "version")
    self.profile = profile
    guard profile.createdAt.isPlausible, profile.changedAt.isPlausible, profile.channels > 0 else {
      throw StorageError.corrupt(column: "noise_profiles", value: profile.id.text)
    }
  }

  func encode(to container: inout PersistenceContainer) throws {
    container["id"] = profile.id.text
    container["tenant"] = profile.tenant.name
    container["name"] = profile.name
    container["recording"] = profile.recording?.text
    container["noise"] = profile.noise
    container["sample_rate"] = profile.sampleRate
    container["channels"] = profile.channels
    container["spectrum"] = Data(profile.spectrum)
    container["version"] = profile.version
    container["created_at"] = profile.createdAt.milliseconds
    container["changed_at"] = profile.changedAt.milliseconds
  }
}
