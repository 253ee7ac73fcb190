import Jobs
import Terms

/// Slows down clients that send wrong keys: each may be refused `burst` times at once and then `rate` times a second;
/// further refusals wait. Nothing else waits, so a client with a valid key isn't slowed by others at its address.
///
/// Keys have 256 bits and can't be guessed; this bounds what it costs to let someone try.
struct FailedAttempts {
  /// Refusals that don't wait.
  static let burst = 50.0
  /// Refusals per second after these.
  static let rate = 10.0
  /// A refusal that would wait longer, in seconds, isn't worth a connection.
  static let longestWait = 5.0
  /// Clients that are remembered.
  static let clientLimit = 10_000

  /// Their tokens are the refusals that don't wait.
  private var buckets: [Client: TokenBucket] = [:]

  /// Counts a refusal of a client at a time in seconds. Returns the seconds it must wait.
  mutating func wait(for client: Client, at now: Double) -> Double {
    if buckets.count >= Self.clientLimit, buckets[client] == nil { forget(at: now) }
    var bucket = buckets[client] ?? TokenBucket(Self.burst, at: now)
    bucket.fill(until: now, capacity: Self.burst, perSecond: Self.rate)
    bucket.left -= 1
    let wait = max(0, -bucket.left / Self.rate)
    // One that doesn't wait because it would take too long leaves the others' turns as they are.
    if wait > Self.longestWait { bucket.left += 1 }
    buckets[client] = bucket
    return wait
  }

  /// Forgets the clients that may be refused `burst` times again; if there are none, all.
  private mutating func forget(at now: Double) {
    buckets = buckets.filter { $0.value.left(at: now, capacity: Self.burst, perSecond: Self.rate) < Self.burst }
    if buckets.count >= Self.clientLimit { buckets = [:] }
  }
}
