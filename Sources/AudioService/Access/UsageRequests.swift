import HTTP
import Storage

/// `GET /v1/usage`: what the caller's tenant has, has used, and may have.
struct UsageRequests: Sendable {
  let context: Context

  private struct Figure: Encodable {
    let used: Double
    @Nullable var limit: Double?
  }

  private struct Answer: Encodable {
    let tenant: String
    var storedBytes, recordings, queuedJobs, runningJobs, openUploads, jobSecondsPerDay: Figure
    @Nullable var requestsPerSecond: Double?
  }

  @Sendable func read(
    _ request: HTTPRequest, _ parameters: PathParameters, _ caller: Caller
  ) async throws -> HTTPResponse {
    try QueryParameters.checkNone(request)
    let catalog = caller.catalog
    let today = context.accounts.today
    let usage = try await context.work.run { () throws(StorageError) in try catalog.usage(through: today) }
    func figure(_ used: Double, _ name: TenantLimits.Name) -> Figure {
      Figure(used: used, limit: context.accounts.limit(name, of: caller.tenant))
    }
    let answer = Answer(
      tenant: caller.tenant.name, storedBytes: figure(Double(usage.storedBytes), .storedBytes),
      recordings: figure(Double(usage.recordings), .recordings),
      queuedJobs: figure(Double(usage.queuedJobs + usage.runningJobs), .queuedJobs),
      runningJobs: figure(Double(usage.runningJobs), .runningJobs),
      openUploads: figure(Double(usage.openUploads), .openUploads),
      jobSecondsPerDay: figure(
        usage.jobSecondsToday + (context.accounts.spent[caller.tenant] ?? 0), .jobSecondsPerDay),
      requestsPerSecond: context.accounts.limit(.requestsPerSecond, of: caller.tenant))
    return try .json(.ok, answer, fields: ["Cache-Control": "no-store"])
  }
}

extension Context {
  /// Throws `.limitReached` if a tenant may not store this many bytes more, besides what its uploads have announced and
  /// its jobs will make, or has as many recordings as it may.
  func checkUsage(of caller: Caller, adding bytes: Int64) async throws {
    _ = try await announce(bytes, of: caller)
  }

  /// Throws like `checkUsage`, and counts the bytes, at least one, until the share ends.
  func announce(_ bytes: Int64, of caller: Caller) async throws -> AnnouncedBytes.Share {
    let limits = accounts.stored(by: caller.tenant)
    guard limits.recordings != nil || limits.bytes != nil else { return announced.share(of: caller.tenant, limit: nil) }
    let catalog = caller.catalog
    let usage = try await work.run { () throws(StorageError) in try catalog.usage() }
    if let limit = limits.recordings, usage.recordings >= limit {
      throw StorageError.limitReached("recordings", limit: limit)
    }
    let share = announced.share(of: caller.tenant, limit: limits.bytes.map { (all: $0, left: usage.left(of: $0)) })
    try share.grow(by: max(bytes, 1))
    return share
  }
}

extension TenantUsage {
  /// Returns how many of the bytes that a tenant may store are neither stored nor expected; may be negative.
  fileprivate func left(of limit: Int64) -> Int64 {
    [storedBytes, announcedBytes, expectedBytes].reduce(limit) { left, bytes in
      let (rest, overflow) = left.subtractingReportingOverflow(bytes)
      return overflow ? .min : rest
    }
  }
}
