import Storage
import Synchronization

/// The time by which keys and tokens expire: the catalog's, which all nodes go by. It never runs backward, so that what
/// has expired stays expired even if the clock is set back.
final class AccessClock: Sendable {
  private let latest = Atomic<Int64>(.min)
  private let source: @Sendable () -> Timestamp

  /// Creates a clock that follows another one.
  init(following source: @escaping @Sendable () -> Timestamp) { self.source = source }

  /// The current time, or the latest one that was returned if that is later.
  var now: Timestamp {
    let now = source().milliseconds
    return Timestamp(milliseconds: latest.max(now, ordering: .relaxed).newValue)
  }

  /// Whether a time is still to come; nil never comes.
  func isBefore(_ end: Timestamp?) -> Bool { end.map { now < $0 } ?? true }
}
