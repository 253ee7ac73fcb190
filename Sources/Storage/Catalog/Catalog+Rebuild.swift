extension Catalog {
  /// Changes a recording if `isExpected` returns true for it, and inserts `job`, which reads the recording, in the same
  /// transaction. Returns the changed recording. Does nothing and returns nil if the recording was deleted or isn't as
  /// expected.
  package func update(
    _ id: RecordingID, if isExpected: @Sendable (Recording) -> Bool, inserting job: Job?,
    _ change: @Sendable (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try update(id, if: isExpected, inserting: job, describing: .now, change)
  }

  func update(
    _ id: RecordingID, of tenant: Tenant? = nil, if isExpected: @Sendable (Recording) -> Bool, inserting job: Job?,
    within limits: StoredLimits? = nil, describing time: DescribingTime, _ change: @Sendable (inout Recording) -> Void
  ) throws(StorageError) -> Recording? {
    try write(.statementLocks, describing: time) { db in
      guard let recording = try Self.locked(id, of: tenant, db), isExpected(recording) else { return nil }
      let changed = try Self.update(recording, db, change)
      if let job { try plan(job, of: recording.tenant, within: limits, db) }
      return changed
    }
  }
}
