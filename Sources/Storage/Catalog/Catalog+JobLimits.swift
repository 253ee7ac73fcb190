/// Limits on jobs that the nodes of a shared catalog keep together. Those of one client are read when they are needed,
/// so they may change meanwhile; nothing may block.
package struct JobLimits: Sendable {
  /// The maximum number of all clients' queued and running jobs; nil for any. The service's own work counts, but is
  /// never refused: its jobs have no client.
  package var all: Int?
  /// The maximum number of a client's queued and running jobs; nil for any.
  package var unfinished: @Sendable (_ client: String) -> Int?
  /// The maximum number of its running jobs; nil for any.
  package var running: @Sendable (_ client: String) -> Int?

  /// Creates limits.
  package init(
    all: Int? = nil, unfinished: @escaping @Sendable (_ client: String) -> Int?,
    running: @escaping @Sendable (_ client: String) -> Int?
  ) {
    (self.all, self.unfinished, self.running) = (all, unfinished, running)
  }
}

// A node counts the jobs that it knows of, its own and those that it has heard of, before it queues or begins another.
// That is all it takes on one machine. Two nodes that do so at the same moment don't see each other's jobs, so their
// transactions count again, each client's one after the other.
//
// Those that queue jobs also count all clients' jobs, up to the limit, through the index of states. They do it one
// after the other only if the queue is so full that those of the same moment might exceed the limit.

extension Catalog {
  /// The number of jobs that transactions of the same moment queue at most: eight connections on each of sixty nodes.
  static let simultaneousJobs = 500

  /// Inserts a job that a client has asked for. Throws `.limitReached` if the nodes together would have more unfinished
  /// jobs of the client than they may, and `.queueFull` if they would have more of all clients.
  ///
  /// With a tenant, throws `.noSuchRecording` unless the job's source is that tenant's.
  func queue(_ job: Job, of tenant: Tenant? = nil, _ db: CatalogTransaction) throws {
    try Self.insert(job, of: tenant, db)
    guard let limits = sharedJobLimits else { return }
    if let limit = limits.unfinished(job.client) {
      let count = try count(states: ["queued", "running"], ofClientOf: job, db)
      if count > limit { throw StorageError.limitReached("queued_jobs", limit: Int64(limit)) }
    }
    guard let limit = limits.all, !job.client.isEmpty else { return }
    let free = limit - Self.simultaneousJobs
    if free > 0, try Self.hasAtMost(free, db) { return }
    try Self.lock(name: "all jobs", db)
    guard try Self.hasAtMost(limit, db) else { throw StorageError.queueFull(limit: limit) }
  }

  /// Whether there are no more queued and running jobs than these. Reads one more of them at most.
  private static func hasAtMost(_ limit: Int, _ db: CatalogTransaction) throws -> Bool {
    let unfinished = "SELECT 1 AS one FROM jobs WHERE state IN ('queued', 'running') LIMIT ?"
    return try db.first("SELECT count(*) FROM (\(unfinished)) AS unfinished", [limit + 1], as: Int.self) ?? 0 <= limit
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
