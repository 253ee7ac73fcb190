import Dispatch
import Storage
import Synchronization

/// Removes the traces of what was deleted from the catalog's files soon after. That rewrites the index of names, so it
/// is done at most once a second, and takes at most a tenth of the time.
final class Erasure: Sendable {
  private let catalog: Catalog
  private let log: ServiceLog
  private let queue = DispatchQueue(label: "erasure")
  private let isDue = Atomic(false)
  /// The pause before the next time, in milliseconds.
  private let pause = Atomic<Int>(1000)

  init(_ catalog: Catalog, _ log: ServiceLog) { (self.catalog, self.log) = (catalog, log) }

  /// Notes that something was deleted.
  func note() {
    guard !isDue.exchange(true, ordering: .sequentiallyConsistent) else { return }
    catalog.clock.after(Double(pause.load(ordering: .relaxed)) / 1000, on: queue) { [self] in erase() }
  }

  /// Removes the traces now, if there are any. Blocks.
  func finish() { queue.sync { erase() } }

  private func erase() {
    guard isDue.exchange(false, ordering: .sequentiallyConsistent) else { return }
    let start = catalog.clock.now
    defer { pause.store(max(1000, Int(catalog.clock.seconds(since: start) * 9000)), ordering: .relaxed) }
    do { try catalog.eraseTraces() } catch {
      log.failure("traces of what was deleted could not be removed yet", ["error": logText(error)])
      // A backup may be reading the catalog.
      catalog.clock.after(60, on: queue) { [self] in erase() }
      isDue.store(true, ordering: .sequentiallyConsistent)
    }
  }
}
