import Storage
import Synchronization

/// The time by which keys and tokens expire. It never runs backward, so that what has expired stays expired even if the
/// system's clock is set back.
final class AccessClock: Sendable {
  private let latest = Atomic<Int64>(.min)
  private let system: @Sendable () -> Timestamp

  /// Creates a clock. `system` is for tests.
  init(system: @escaping @Sendable () -> Timestamp = { .now }) { self.system = system }

  /// The current time, or the latest one that was returned if that is later.
  var now: Timestamp {
    let now = system().milliseconds
    return Timestamp(milliseconds: latest.max(now, ordering: .relaxed).newValue)
  }
}
