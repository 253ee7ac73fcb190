/// What a key allows. Each route needs one of them.
package enum Scope: String, Sendable, Hashable, CaseIterable {
  /// Reading what the tenant has.
  case read
  /// Uploading, changing, and starting jobs.
  case write
  /// Deleting, and canceling jobs.
  case delete
  /// Metrics and readiness. Only keys of the empty tenant can have it, and it gives access to no recording.
  case admin
}
