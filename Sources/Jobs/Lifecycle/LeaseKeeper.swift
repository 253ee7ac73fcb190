import Storage

/// The leases of this process's attempts if several processes share the catalog: when each ends by this process's own
/// clock, which runs on while the process can't reach the catalog.
///
/// A lease ends no earlier than this long after it was asked for, because the catalog counts from when the request
/// arrives. Times are in seconds since any fixed moment.
struct LeaseKeeper {
  private let terms: LeaseHolder.Terms
  private var ends: [AttemptToken: Double] = [:]

  init(_ terms: LeaseHolder.Terms) { self.terms = terms }

  /// The attempts whose leases are kept.
  var tokens: [AttemptToken] { Array(ends.keys) }

  /// Notes that the catalog has granted a lease, which it was asked for at `time`. Returns the time at which the
  /// attempt must be stopped unless the lease is prolonged before.
  mutating func granted(_ token: AttemptToken, askedAt time: Double) -> Double {
    ends[token] = 0
    return prolonged(token, askedAt: time) ?? 0
  }

  /// Notes that the catalog has prolonged a lease. Returns nil if the attempt has ended meanwhile.
  mutating func prolonged(_ token: AttemptToken, askedAt time: Double) -> Double? {
    guard let known = ends[token] else { return nil }
    let end = max(time + terms.seconds, known)
    ends[token] = end
    return end - terms.marginSeconds
  }

  /// Whether an attempt must be stopped now.
  func isEnding(_ token: AttemptToken, at now: Double) -> Bool {
    ends[token].map { $0 - terms.marginSeconds <= now } ?? false
  }

  /// Forgets an attempt that has ended.
  mutating func ended(_ token: AttemptToken) { ends[token] = nil }
}
