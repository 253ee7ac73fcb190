import Synchronization

@testable import Storage

/// A clock that the test sets.
final class TestClock: Sendable {
  private let seconds = Mutex(0.0)

  func now() -> Timestamp { Timestamp(milliseconds: 1_800_000_000_000) + seconds.withLock { $0 } }
  func advance(_ more: Double) { seconds.withLock { $0 += more } }
}
