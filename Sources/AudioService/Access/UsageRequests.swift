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
    let usage = try await context.work.run { () throws(StorageError) in try catalog.usage() }
    func figure(_ used: Double, _ name: TenantLimits.Name) -> Figure {
      Figure(used: used, limit: context.accounts.limit(name, of: caller.tenant))
    }
    let answer = Answer(
      tenant: caller.tenant.name, storedBytes: figure(Double(usage.storedBytes), .storedBytes),
      recordings: figure(Double(usage.recordings), .recordings),
      queuedJobs: figure(Double(usage.queuedJobs), .queuedJobs),
      runningJobs: figure(Double(usage.runningJobs), .runningJobs),
      openUploads: figure(Double(usage.openUploads), .openUploads),
      jobSecondsPerDay: figure(usage.jobSecondsToday, .jobSecondsPerDay),
      requestsPerSecond: context.accounts.limit(.requestsPerSecond, of: caller.tenant))
    return try .json(.ok, answer, fields: ["Cache-Control": "no-store"])
  }
}

extension Context {
  /// Throws `.limitReached` if a tenant may not store this many bytes more, besides what its unfinished uploads have
  /// announced, or has as many recordings as it may.
  func checkUsage(of caller: Caller, adding bytes: Int64) async throws {
    let limits = accounts.stored(by: caller.tenant)
    guard limits.recordings != nil || limits.bytes != nil else { return }
    let catalog = caller.catalog
    let usage = try await work.run { () throws(StorageError) in try catalog.usage() }
    if let limit = limits.recordings, usage.recordings >= limit {
      throw StorageError.limitReached("recordings", limit: limit)
    }
    let (sum, overflow) = (usage.storedBytes + usage.announcedBytes).addingReportingOverflow(max(bytes, 1))
    if let limit = limits.bytes, overflow || sum > limit {
      throw StorageError.limitReached("stored_bytes", limit: limit)
    }
  }
}
