/// What one transaction has changed.
package struct CatalogChanges: Sendable, Equatable {
  /// Recordings that were inserted or changed and still exist.
  package var recordings: [Owned<Recording>]
  /// Recordings that were deleted.
  package var deleted: [Owned<Recording>]
  /// Jobs that were inserted or changed.
  package var jobs: [JobChange]
  /// Whether anything that a client made was deleted or replaced, so that there is something to erase.
  package var leavesTraces: Bool

  /// Creates a value from its parts.
  package init(
    recordings: [Owned<Recording>] = [], deleted: [Owned<Recording>] = [], jobs: [JobChange] = [],
    leavesTraces: Bool = false
  ) {
    (self.recordings, self.deleted, self.jobs, self.leavesTraces) = (recordings, deleted, jobs, leavesTraces)
  }
}

/// The ID of something together with the tenant that it belongs to, or did until it was deleted.
package struct Owned<Entity>: Sendable, Hashable {
  /// The ID.
  package var id: Identifier<Entity>
  /// The owner.
  package var tenant: Tenant

  /// Creates a value from its parts.
  package init(_ id: Identifier<Entity>, of tenant: Tenant) { (self.id, self.tenant) = (id, tenant) }
}

/// A job that was inserted or changed.
package struct JobChange: Sendable, Equatable {
  /// The ID.
  package var id: JobID
  /// The owner.
  package var tenant: Tenant
  /// The job's row after the change; nil if it isn't known. If another process made the change, then without
  /// parameters, result, error, client, and times.
  package var job: Job?

  /// Creates a value from its parts.
  package init(_ id: JobID, of tenant: Tenant, job: Job? = nil) { (self.id, self.tenant, self.job) = (id, tenant, job) }
}
