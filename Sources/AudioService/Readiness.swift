import Storage
import Synchronization

/// Whether the service can take work: the catalogue can be written, and the disk has room.
///
/// To know it costs a durable write. However often it is asked, it is looked up at most once a second.
final class Readiness: Sendable {
  /// What there was to say at last.
  enum Finding: Sendable {
    case ready, diskIsFull
    case catalogueFails(String)
  }

  private struct Known {
    var finding: Finding
    var at: ContinuousClock.Instant
  }

  private let known = Mutex<Known?>(nil)

  /// What holds now, or did less than a second ago. `look` blocks: on a worker queue.
  func finding(_ look: () -> Finding) -> Finding {
    let now = ContinuousClock.now
    if let known = known.withLock({ $0 }), known.at + .seconds(1) > now { return known.finding }
    let finding = look()
    known.withLock { $0 = Known(finding: finding, at: now) }
    return finding
  }
}
