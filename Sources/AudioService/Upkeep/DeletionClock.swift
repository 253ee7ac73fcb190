import Storage
import Synchronization

/// Says what time it is for whatever is deleted because of its age, unless the catalog's clock may be wrong.
final class DeletionClock: Sendable {
  private let catalog: Catalog
  private let log: ServiceLog
  private let isDoubted = Mutex(false)
  private let isResumed = Atomic(false)

  init(_ catalog: Catalog, _ log: ServiceLog) { (self.catalog, self.log) = (catalog, log) }

  /// Compares the clocks, first of all with what was heard before this start, and returns the time; nil if it may be
  /// wrong. The log says once when that begins and ends. Throws if the catalog can't be read or written. Blocks.
  func time() throws(StorageError) -> Timestamp? {
    // The catalog's time mustn't be an old estimate.
    try catalog.compareClocks()
    if !isResumed.load(ordering: .relaxed) {
      try catalog.resumeClock()
      isResumed.store(true, ordering: .relaxed)
    }
    try catalog.rememberClock()
    let doubt = catalog.clockDoubt
    let isNew = isDoubted.withLock { known in
      defer { known = doubt != nil }
      return known != (doubt != nil)
    }
    if isNew, let doubt {
      log.failure(
        "nothing is deleted because of its age: the catalog's clock may be wrong", ["error": Self.words(for: doubt)])
    } else if isNew {
      log.notice("what has reached its age is deleted again")
    }
    return doubt == nil ? catalog.time : nil
  }

  /// Keeps what was heard of the clock for the next start. Blocks.
  func remember() throws(StorageError) {
    // Before, what an earlier start has kept says more.
    if isResumed.load(ordering: .relaxed) { try catalog.rememberClock() }
  }

  /// What is wrong with the catalog's clock, as the end of a sentence.
  static func words(for doubt: ClockDoubt) -> String {
    switch doubt {
    case .differs(let seconds) where seconds < 0: "it is \(Int(-seconds)) s behind this machine's"
    case .differs(let seconds): "it is \(Int(seconds)) s ahead of this machine's"
    case .jumped(let seconds): "it has jumped ahead by \(Int(seconds)) s within the last day"
    case .unproven(let seconds):
      "it is \(Int(seconds)) s later than when the service ran last, and this machine was started in between"
    }
  }
}
