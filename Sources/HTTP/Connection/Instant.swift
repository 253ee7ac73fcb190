import Terms

/// A point in time on the monotonic clock.
struct Instant: Comparable, Sendable {
  var nanoseconds: UInt64

  init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

  /// Creates the current moment of a clock.
  init(_ clock: Clock) {
    let (seconds, attoseconds) = (clock.now - Self.zero).components
    nanoseconds = UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds)) / 1_000_000_000
  }

  /// A day before any, so that a clock moved by hand may be behind a little.
  private static let zero = Clock.system.instant(after: -86_400)

  static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

  func adding(seconds: Double) -> Instant { Instant(nanoseconds: nanoseconds &+ UInt64(max(0, seconds) * 1e9)) }

  func seconds(since earlier: Instant) -> Double {
    nanoseconds < earlier.nanoseconds ? 0 : Double(nanoseconds - earlier.nanoseconds) / 1e9
  }
}
