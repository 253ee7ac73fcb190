/// A point in time on the monotonic clock.
struct Instant: Comparable, Sendable {
  var nanoseconds: UInt64

  static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

  func adding(seconds: Double) -> Instant { Instant(nanoseconds: nanoseconds &+ UInt64(max(0, seconds) * 1e9)) }

  func seconds(since earlier: Instant) -> Double {
    nanoseconds < earlier.nanoseconds ? 0 : Double(nanoseconds - earlier.nanoseconds) / 1e9
  }
}
