import Storage
import Synchronization
import Terms

/// The time by a store's clock, as far as its difference from this machine's is known. Thread-safe; the clients of one
/// store share it, so what one of them learns holds for all.
final class StoreClock: Sendable {
  private let own: Clock
  /// How many milliseconds the store's clock is ahead, if this machine's was refused.
  private let lead = Atomic<Int64>(0)

  /// `own` is this machine's clock.
  init(_ own: Clock) { self.own = own }

  /// The time to sign requests with.
  var now: Timestamp { Timestamp(milliseconds: own.wallMilliseconds + lead.load(ordering: .relaxed)) }

  /// Takes in what time it is by the store's clock.
  func set(to time: Timestamp) { lead.store(time.milliseconds - own.wallMilliseconds, ordering: .relaxed) }
}
