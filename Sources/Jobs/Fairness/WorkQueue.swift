import Dispatch
import Storage
import Synchronization

/// Threads for blocking work (SQLite, files, children), so that connections' queues never wait for a disk.
package final class WorkQueue: Sendable {
  private struct State {
    var idle: [DispatchQueue]
    /// What waits for a thread, from `next` on. What has begun is nil, so that nothing keeps alive what it holds.
    var waiting: [(@Sendable () -> Void)?] = []
    var next = 0

    mutating func take() -> (@Sendable () -> Void)? {
      guard next < waiting.count else { return nil }
      defer { next += 1 }
      return waiting[next].take()
    }

    mutating func trim() {
      guard next == waiting.count || next >= 1024 else { return }
      waiting.removeFirst(next)
      next = 0
    }
  }

  private let state: Mutex<State>

  /// Creates a queue that does at most so much work at a time.
  package init(label: String, threads: Int = 16) {
    // Serial queues, because concurrent ones share their threads with everything else in the process, and the system
    // starts few others while they block: four blocked ones made all others wait for seconds.
    state = Mutex(State(idle: (0..<threads).map { DispatchQueue(label: "\(label) \($0)") }))
  }

  /// Runs `body` on a thread and returns its result.
  package func run<R: Sendable, E: Error>(_ body: @escaping @Sendable () throws(E) -> R) async throws(E) -> R {
    let result: Result<R, E> = await withCheckedContinuation { continuation in
      start(AuditTrail.carrying { continuation.resume(returning: Result { () throws(E) in try body() }) })
    }
    return try result.get()
  }

  /// Runs `body` on a thread without waiting for it.
  package func start(_ body: @escaping @Sendable () -> Void) {
    let thread: DispatchQueue? = state.withLock { state in
      if let thread = state.idle.popLast() { return thread }
      state.waiting.append(body)
      return nil
    }
    thread?.async { [self] in
      body()
      while let next = next(on: thread) { next() }
    }
  }

  /// Returns what a thread does next; nil once it is idle.
  private func next(on thread: DispatchQueue?) -> (@Sendable () -> Void)? {
    state.withLock { state in
      defer { state.trim() }
      if let next = state.take() { return next }
      if let thread { state.idle.append(thread) }
      return nil
    }
  }
}
