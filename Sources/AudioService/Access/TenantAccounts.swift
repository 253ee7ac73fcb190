import HTTP
import Jobs
import Storage
import Synchronization
import Terms

/// Holds tenants to their limits: those that their keys name, or else those of the settings. Without keys there are
/// none.
final class TenantAccounts: Sendable {
  private struct State {
    /// Their tokens are requests: one second's worth, or one request if that is less.
    var buckets: [Tenant: TokenBucket] = [:]
    var jobSeconds: [Tenant: Double] = [:]
    /// The day of `jobSeconds`, in days since 1970.
    var day: Int64 = 0
    /// Seconds of work on demand that aren't in `jobSeconds` yet.
    var spent: [Tenant: Double] = [:]
  }

  private let access: Access
  private let defaults: TenantLimits
  private let state = Mutex(State())
  private let start: Clock.Instant

  init(_ access: Access, defaults: TenantLimits) {
    (self.access, self.defaults, start) = (access, defaults, access.waitClock.now)
  }

  /// Returns a limit of a tenant; nil if there is none.
  func limit(_ name: TenantLimits.Name, of tenant: Tenant) -> Double? {
    guard let ring = access.ring else { return nil }
    return limit(name, ring.namedLimits(of: tenant))
  }

  private func limit(_ name: TenantLimits.Name, _ named: KeyRing.NamedLimits?) -> Double? {
    named?.current(access.clock)[name] ?? defaults[name]
  }

  /// Returns a limit as a whole number.
  func count(_ name: TenantLimits.Name, of tenant: Tenant) -> Int64? {
    limit(name, of: tenant).map { Int64(min($0, 0x1p53)) }
  }

  /// Returns the limits on what a tenant may store.
  func stored(by tenant: Tenant) -> StoredLimits {
    StoredLimits(recordings: count(.recordings, of: tenant), bytes: count(.storedBytes, of: tenant))
  }

  // MARK: Requests

  /// Counts a request of a tenant. Returns the fields that say how many more there may be; nil if there is no limit.
  /// `named` are the limits that the tenant's keys name. Throws `.limitReached` if there are too many.
  func takeRequest(
    of tenant: Tenant, named: KeyRing.NamedLimits?, at now: Double? = nil
  ) throws(ServiceError) -> HTTPFields? {
    guard let rate = limit(.requestsPerSecond, named) else { return nil }
    let now = now ?? access.waitClock.seconds(since: start)
    let capacity = max(1, rate)
    let (isTaken, left) = state.withLock { state in
      var bucket = state.buckets[tenant] ?? TokenBucket(capacity, at: now)
      bucket.fill(until: now, capacity: capacity, perSecond: rate)
      let isTaken = rate > 0 && bucket.left >= 1
      if isTaken { bucket.left -= 1 }
      state.buckets[tenant] = bucket
      return (isTaken, bucket.left)
    }
    guard isTaken else {
      let seconds = rate > 0 ? ((1 - left) / rate).rounded(.up) : 86_400
      throw .limitReached(
        "requests_per_second", limit: Int(rate.rounded(.up)), retryAfter: Int(min(max(1, seconds), 86_400)))
    }
    let window = rate >= 1 || rate <= 0 ? 1 : Int((1 / rate).rounded(.up))
    let name = "\"\(TenantLimits.Name.requestsPerSecond.rawValue)\""
    return [
      "RateLimit-Policy": "\(name);q=\(Int(capacity));w=\(window)", "RateLimit": "\(name);r=\(Int(left));t=\(window)",
    ]
  }

  // MARK: Jobs

  /// The limits on jobs by client. Doesn't block.
  var clientLimits: ClientLimits {
    ClientLimits(
      queued: { [self] in $0.tenant.flatMap { count(.queuedJobs, of: $0) }.map { Int($0) } },
      running: { [self] in $0.tenant.flatMap { count(.runningJobs, of: $0) }.map { Int($0) } },
      spentDay: { [self] client in client.tenant.flatMap(spentDay) }, stored: { [self] in stored(by: $0) })
  }

  /// Notes for how long each tenant's jobs have run today, and that this includes `spent`.
  func note(jobSeconds: [Tenant: Double], including spent: [Tenant: Double] = [:]) {
    let day = today
    state.withLock { state in
      (state.jobSeconds, state.day) = (jobSeconds, day)
      for (tenant, seconds) in spent {
        let left = (state.spent[tenant] ?? 0) - seconds
        state.spent[tenant] = left > 0 ? left : nil
      }
    }
  }

  /// Counts seconds of work on demand like those of jobs. Returns how many of the tenant's the catalog doesn't have
  /// yet.
  func spend(_ seconds: Double, of tenant: Tenant) -> Double {
    state.withLock { state in
      state.spent[tenant, default: 0] += max(0, seconds)
      return state.spent[tenant] ?? 0
    }
  }

  /// The seconds of work on demand that the catalog doesn't have yet.
  var spent: [Tenant: Double] { state.withLock { $0.spent } }

  private func spentDay(_ tenant: Tenant) -> (limitSeconds: Double, secondsLeft: Int)? {
    guard let limit = limit(.jobSecondsPerDay, of: tenant) else { return nil }
    let day = today
    let spent = state.withLock { ($0.day == day ? $0.jobSeconds[tenant] ?? 0 : 0) + ($0.spent[tenant] ?? 0) }
    guard spent >= limit else { return nil }
    return (limit, Int((day + 1) * 86_400 - access.clock.now.milliseconds / 1000))
  }

  /// The day by the clock that never runs backward: setting the system's clock back resets no limit.
  var today: Int64 { access.clock.now.milliseconds / 86_400_000 }
}
