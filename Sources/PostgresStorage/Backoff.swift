import Glibc

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
  let instant: ContinuousClock.Instant

  init(seconds: Double) { instant = .now + .seconds(seconds) }

  /// Never negative.
  var secondsLeft: Double { max(0, (instant - .now) / .seconds(1)) }
  var isOver: Bool { instant <= .now }

  /// Returns the earlier of two.
  func orEarlier(_ other: Deadline) -> Deadline { other.instant < instant ? other : self }
}

/// Blocks the calling thread.
func pause(seconds: Double) {
  let deadline = Deadline(seconds: seconds)
  while !deadline.isOver { usleep(UInt32(min(deadline.secondsLeft, 0.9) * 1e6) + 1) }
}
