import Dispatch
import Storage
import Synchronization

/// Work that one thread does and others wait for. Once anyone can wait for it, it ends, because it consists of calls
/// that have deadlines.
final class SharedTask: Sendable {
  enum Outcome: Sendable {
    case done
    /// There is no such object.
    case absent
    case failed(StorageError)
  }

  /// Whether it may wait for the store; otherwise only for the disk.
  let asksStore: Bool
  private let group = DispatchGroup()
  private let outcome = Mutex<Outcome?>(nil)

  init(asksStore: Bool = false) {
    self.asksStore = asksStore
    group.enter()
  }

  deinit {
    // Nobody was to do the work after all. A group that was entered and not left is never released.
    if outcome.withLock({ $0 == nil }) { group.leave() }
  }

  /// Ends it, once.
  func finish(_ result: Outcome) {
    outcome.withLock { $0 = result }
    group.leave()
  }

  /// Returns when it has ended: false if there is no such object. Throws its error.
  func wait() throws(StorageError) -> Bool {
    group.wait()
    switch outcome.withLock({ $0 }) {
    case .done: return true
    case .absent: return false
    case .failed(let error): throw error
    case nil: preconditionFailure("a task has an outcome before it ends")
    }
  }
}
