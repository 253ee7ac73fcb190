import Terms

/// Limits how often something is done.
struct Pace {
  /// A worker is a process of its own, which no service gives a clock.
  private static let clock = Clock.system

  private let interval: Duration
  private var last: Clock.Instant?

  /// Creates a pace of once per `interval`, first at once.
  init(_ interval: Duration) { self.interval = interval }

  /// Whether the interval has passed since the last time this was true.
  mutating func isDue() -> Bool {
    let now = Self.clock.now
    if let last, now - last < interval { return false }
    last = now
    return true
  }
}
