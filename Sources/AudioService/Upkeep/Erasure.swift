import Dispatch
import Storage
import Synchronization

/// Removes the traces of deleted recordings from the catalog's files soon after they were deleted: at most once a
/// second, because it rewrites the index of names.
final class Erasure: Sendable {
  private let catalog: Catalog
  private let log: ServiceLog
  private let queue = DispatchQueue(label: "erasure")
  private let isDue = Atomic(false)

  init(_ catalog: Catalog, _ log: ServiceLog) { (self.catalog, self.log) = (catalog, log) }

  /// Notes that a recording was deleted.
  func note() {
    guard !isDue.exchange(true, ordering: .sequentiallyConsistent) else { return }
    queue.asyncAfter(deadline: .now() + 1) { [self] in erase() }
  }

  /// Removes the traces now, if there are any. Blocks.
  func finish() { queue.sync { erase() } }

  private func erase() {
    guard isDue.exchange(false, ordering: .sequentiallyConsistent) else { return }
    do { try catalog.eraseTraces() } catch {
      log.failure("traces of deleted recordings could not be removed yet", ["error": logText(error)])
      // A backup may be reading the catalog.
      queue.asyncAfter(deadline: .now() + 60) { [self] in erase() }
      isDue.store(true, ordering: .sequentiallyConsistent)
    }
  }
}
