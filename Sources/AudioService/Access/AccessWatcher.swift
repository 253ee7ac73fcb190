import Dispatch
import Synchronization

/// Reads the files of keys and secrets again soon after they change.
final class AccessWatcher: Sendable {
  private let context: Context
  private let queue = DispatchQueue(label: "keys")
  /// Apart from the keys: a disk that takes no more lines must not keep a key from being revoked.
  private let auditQueue = DispatchQueue(label: "audit log at SIGHUP")
  private let isStopped = Atomic(false)

  /// How often the files are looked at. Costs two system calls.
  private static let pauseSeconds = 1.0

  init(_ context: Context) { self.context = context }

  /// Starts looking, if there are keys.
  func start() {
    guard context.access.hasKeys else { return }
    lookLater()
  }

  /// Does what SIGHUP asks for, soon and without blocking: reads the files again, and opens the audit log again.
  func reload() {
    queue.async { [context] in context.reloadAccess() }
    auditQueue.async { [context] in context.reopenAudit() }
  }

  func stop() { isStopped.store(true, ordering: .relaxed) }

  private func lookLater() {
    context.clock.after(Self.pauseSeconds, on: queue) { [weak self] in
      guard let self, !isStopped.load(ordering: .relaxed) else { return }
      context.reloadAccess()
      lookLater()
    }
  }
}
