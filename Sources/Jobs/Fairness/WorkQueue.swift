import Dispatch
import Storage

/// Runs blocking work (SQLite, files), so that connections' queues never wait for a disk.
package final class WorkQueue: Sendable {
  private let queue: DispatchQueue

  /// Creates an empty queue.
  package init(label: String) { queue = DispatchQueue(label: label, attributes: .concurrent) }

  /// Runs `body` on a worker thread and returns its result.
  package func run<R: Sendable, E: Error>(_ body: @escaping @Sendable () throws(E) -> R) async throws(E) -> R {
    let result: Result<R, E> = await withCheckedContinuation { continuation in
      queue.async(
        execute: AuditTrail.carrying { continuation.resume(returning: Result { () throws(E) in try body() }) })
    }
    return try result.get()
  }

  /// Runs `body` on a worker thread without waiting for it.
  package func start(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}
