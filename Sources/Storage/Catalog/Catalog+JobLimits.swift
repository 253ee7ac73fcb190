/// Limits on one client's jobs that the nodes of a shared catalog keep together. They are read when they are needed, so
/// they may change meanwhile; nothing may block.
package struct JobLimits: Sendable {
  /// The maximum number of a client's queued and running jobs; nil for any.
  package var unfinished: @Sendable (_ client: String) -> Int?
  /// The maximum number of its running jobs; nil for any.
  package var running: @Sendable (_ client: String) -> Int?

  /// Creates limits.
  package init(
    unfinished: @escaping @Sendable (_ client: String) -> Int?, running: @escaping @Sendable (_ client: String) -> Int?
  ) {
    (self.unfinished, self.running) = (unfinished, running)
  }
}

// A node counts the jobs that it knows of, its own and those that it has heard of, before it queues or begins another.
// That is all it takes on one machine. Two nodes that do so at the same moment don't see each other's jobs, so their
// transactions count again, each client's one after the other.

extension Catalog {
  /// Inserts a job that a client has asked for. Throws `.limitReached` if the nodes together would have more unfinished
  /// jobs of the client than they may.
  func queue(_ job: Job, _ db: CatalogTransaction) throws {
    try Self.insert(job, db)
    guard let limit = sharedJobLimits?.unfinished(job.client) else { return }
    let count = try count(states: ["queued", "running"], ofClientOf: job, db)
    if count > limit { throw StorageError.limitReached("queued_jobs", limit: Int64(limit)) }
  }

  /// Whether one more job of its client may run.
  func mayRun(_ job: Job, _ db: CatalogTransaction) throws -> Bool {
    guard let limit = sharedJobLimits?.running(job.client) else { return true }
    return try count(states: ["running"], ofClientOf: job, db) < limit
  }

  /// Counts a client's jobs, which no other transaction of `queue` and `mayRun` changes until the end of this one.
  private func count(states: [String], ofClientOf job: Job, _ db: CatalogTransaction) throws -> Int64 {
    try Self.lock(name: "jobs of \(job.client)", db)
    let names = states.map { "'\($0)'" }.joined(separator: ", ")
    return try db.first(
      "SELECT count(*) FROM jobs WHERE state IN (\(names)) AND client = ?", [job.client], as: Int64.self) ?? 0
  }
}
