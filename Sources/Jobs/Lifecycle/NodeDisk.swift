import Storage
import Synchronization
import Terms

/// A node's own disk for files in progress, as far as it decides whether the node may begin jobs: another node's may be
/// fine. Thread-safe.
final class NodeDisk: Sendable {
  private let scratch: Scratch
  private let reservedBytes: Int64
  private let clock: Clock
  private let wasFineAt = Mutex<Clock.Instant?>(nil)

  /// Looks at the disk of `scratch`, of which `reservedBytes` must stay free.
  init(_ scratch: Scratch, reservedBytes: Int64, _ clock: Clock) {
    (self.scratch, self.reservedBytes, self.clock) = (scratch, reservedBytes, clock)
  }

  /// Throws if files can't be written, or only into the reserve. Looks at most once a second while all is well. Blocks.
  func check() throws(StorageError) {
    if let at = wasFineAt.withLock({ $0 }), clock.seconds(since: at) < 1 { return }
    guard try scratch.freeBytes() > reservedBytes else { throw .diskFull }
    try scratch.checkReceiving()
    wasFineAt.withLock { $0 = clock.now }
  }

  /// Has the next check look at the disk, because it has failed.
  func suspect() { wasFineAt.withLock { $0 = nil } }
}
