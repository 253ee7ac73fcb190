/// What one transaction has changed.
package struct CatalogChanges: Sendable, Equatable {
  /// Recordings that were inserted or changed and still exist.
  package var recordings: [RecordingID]
  /// Recordings that were deleted.
  package var deleted: [Deletion]
  /// Jobs that were inserted or changed.
  package var jobs: [JobID]
  /// Whether anything that a client made was deleted or replaced, so that there is something to erase.
  package var leavesTraces: Bool

  /// Creates a value from its parts.
  package init(
    recordings: [RecordingID] = [], deleted: [Deletion] = [], jobs: [JobID] = [], leavesTraces: Bool = false
  ) {
    (self.recordings, self.deleted, self.jobs, self.leavesTraces) = (recordings, deleted, jobs, leavesTraces)
  }
}

/// The deletion of a recording.
package struct Deletion: Sendable, Hashable {
  /// The recording.
  package var recording: RecordingID
  /// The tenant that it belonged to.
  package var tenant: Tenant

  /// Creates a value from its parts.
  package init(_ recording: RecordingID, of tenant: Tenant) { (self.recording, self.tenant) = (recording, tenant) }
}
