/// Limits how often something is done.
struct Pace {
  private let interval: Duration
  private var last: ContinuousClock.Instant?

  /// Creates a pace of once per `interval`, first at once.
  init(_ interval: Duration) { self.interval = interval }

  /// Whether the interval has passed since the last time this was true.
  mutating func isDue() -> Bool {
    let now = ContinuousClock.now
    if let last, now - last < interval { return false }
    last = now
    return true
  }
}
