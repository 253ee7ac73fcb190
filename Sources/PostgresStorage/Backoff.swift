import Terms

/// Waits that double from one failure to the next, up to a limit, each shortened by a random part of up to a half, so
/// that those who failed together don't try again together.
struct Backoff {
  private var next: Double
  private let limit: Double

  init(firstSeconds: Double, limitSeconds: Double) {
    next = firstSeconds
    limit = limitSeconds
  }

  /// Returns the next wait in seconds.
  mutating func seconds() -> Double {
    var generator = SystemRandomNumberGenerator()
    return seconds(using: &generator)
  }

  mutating func seconds(using generator: inout some RandomNumberGenerator) -> Double {
    defer { next = min(limit, next * 2) }
    return next * Double.random(in: 0.5...1, using: &generator)
  }
}

/// An instant until which something may take.
struct Deadline {
  let instant: Clock.Instant
  private let clock: Clock

  init(seconds: Double, by clock: Clock) { (instant, self.clock) = (clock.instant(after: seconds), clock) }

  /// Never negative.
  var secondsLeft: Double { max(0, -clock.seconds(since: instant)) }
  var isOver: Bool { instant <= clock.now }

  /// Returns the earlier of two.
  func orEarlier(_ other: Deadline) -> Deadline { other.instant < instant ? other : self }
}
