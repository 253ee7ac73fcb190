import Storage
import Synchronization

/// A clock that the test sets.
package final class TestClock: Sendable {
  private let seconds = Mutex(0.0)

  /// Creates a clock that shows a time in 2027.
  package init() {}

  package func now() -> Timestamp { Timestamp(milliseconds: 1_800_000_000_000) + seconds.withLock { $0 } }
  package func advance(_ more: Double) { seconds.withLock { $0 += more } }
}
