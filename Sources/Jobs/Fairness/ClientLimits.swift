import Storage

/// The limits on clients' jobs and on what tenants store. All are read when they are needed, so they may change
/// meanwhile; nothing may block.
package struct ClientLimits: Sendable {
  /// The maximum number of waiting and running jobs; nil for the same as other clients'.
  package var queued: @Sendable (Client) -> Int?
  /// The maximum number of running jobs; nil for as many as there are places.
  package var running: @Sendable (Client) -> Int?
  /// The seconds for which jobs may run today, if they have run for that long, and the seconds until tomorrow.
  package var spentDay: @Sendable (Client) -> (limitSeconds: Double, secondsLeft: Int)?
  /// What a tenant may store; nil for anything.
  package var stored: @Sendable (Tenant) -> StoredLimits?

  /// Creates limits, by default none.
  package init(
    queued: @escaping @Sendable (Client) -> Int? = { _ in nil },
    running: @escaping @Sendable (Client) -> Int? = { _ in nil },
    spentDay: @escaping @Sendable (Client) -> (limitSeconds: Double, secondsLeft: Int)? = { _ in nil },
    stored: @escaping @Sendable (Tenant) -> StoredLimits? = { _ in nil }
  ) {
    (self.queued, self.running, self.spentDay, self.stored) = (queued, running, spentDay, stored)
  }
}
