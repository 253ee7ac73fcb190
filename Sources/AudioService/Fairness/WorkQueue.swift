import Dispatch

/// Where blocking work (SQLite, files) runs, so that the connections' queues never wait for a disk.
final class WorkQueue: Sendable {
  private let queue: DispatchQueue

  init(label: String) { queue = DispatchQueue(label: label, attributes: .concurrent) }

  /// Runs `body` on a worker thread; the caller goes on, where it was, when it has ended.
  func run<R: Sendable, E: Error>(_ body: @escaping @Sendable () throws(E) -> R) async throws(E) -> R {
    let result: Result<R, E> = await withCheckedContinuation { continuation in
      queue.async {
        continuation.resume(returning: Result { () throws(E) in try body() })
      }
    }
    return try result.get()
  }

  /// Runs `body` some time, for nobody in particular.
  func start(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }
}
