import Dispatch
import Jobs
import Storage
import Synchronization

/// The keys that this process holds in a catalog that others share (Catalog+HeldKeys): of requests with an idempotency
/// key, and of uploads that it finishes. Renews their leases regularly until all are given back.
final class HeldKeys: Sendable {
  /// What is held. Scopes keep those of different uses apart.
  struct Name: Hashable, Sendable {
    let tenant: Tenant
    let scope, key: String
  }

  private struct State {
    var held: Set<Name> = []
    /// Those that may still have a row, although this process has no use for them any more.
    var owed: Set<Name> = []
    var isRenewing = false
  }

  private let catalog: Catalog
  private let work: WorkQueue
  private let state = Mutex(State())

  /// Creates a table without keys. Renewals run on `work`.
  init(_ catalog: Catalog, work: WorkQueue) { (self.catalog, self.work) = (catalog, work) }

  /// Whether other processes may do the same work, so that its keys must be held.
  var areNeeded: Bool { catalog.isShared }

  /// Takes a key that this process doesn't hold, unless another one does; `.inUse` also while this one still has to
  /// give it back. Blocks, but does nothing if keys aren't needed.
  func hold(_ name: Name) throws(StorageError) -> KeyHold {
    guard areNeeded else { return .held(nil) }
    guard !state.withLock({ $0.owed.contains(name) }) else { return .inUse }
    do throws(StorageError) {
      let hold = try catalog.of(name.tenant).holdKey(scope: name.scope, key: name.key)
      if case .held = hold {
        state.withLock { _ = $0.held.insert(name) }
        renew()
      }
      return hold
    } catch {
      // The row may have been written. If it stayed, it would be renewed with the others although nothing uses it.
      if StorageError.isUncertain(error) { owe(name) }
      throw error
    }
  }

  /// Gives a key back, if this process holds it. If that fails, it is repeated until it works. Blocks.
  func release(_ name: Name) {
    guard state.withLock({ $0.held.contains(name) }) else { return }
    let isReleased = (try? catalog.of(name.tenant).releaseKey(scope: name.scope, key: name.key)) != nil
    if !isReleased { owe(name) }
    state.withLock { _ = $0.held.remove(name) }
  }

  private func owe(_ name: Name) {
    state.withLock { _ = $0.owed.insert(name) }
    renew()
  }

  /// Renews all leases regularly, until there are none. An upload may take hours.
  private func renew(goesOn: Bool = false) {
    let isNeeded = state.withLock { state in
      guard goesOn || !state.isRenewing else { return false }
      state.isRenewing = !state.held.isEmpty || !state.owed.isEmpty
      return state.isRenewing
    }
    guard isNeeded else { return }
    catalog.clock.after(catalog.keyRenewalSeconds) { [weak self] in
      guard let self else { return }
      catalog.clock.begin()
      work.start { [self] in
        settleOwed()
        // One renewal that fails isn't the last.
        if state.withLock({ !$0.held.isEmpty }) { try? catalog.renewKeys() }
        renew(goesOn: true)
        catalog.clock.end()
      }
    }
  }

  private func settleOwed() {
    for name in state.withLock({ $0.owed }) {
      guard (try? catalog.of(name.tenant).releaseKey(scope: name.scope, key: name.key)) != nil else { continue }
      state.withLock { _ = $0.owed.remove(name) }
    }
  }
}
