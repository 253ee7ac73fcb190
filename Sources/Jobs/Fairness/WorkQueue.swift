import Dispatch
import Storage
import Synchronization

/// Threads for blocking work (SQLite, files, children), so that connections' queues never wait for a disk.
package final class WorkQueue: Sendable {
  private struct State {
    var idle: [DispatchQueue]
    /// Work that waits for a thread, from index `next` on. Entries that have started are nil, which releases what they
    /// captured.
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

  /// Creates a queue that runs at most `threads` pieces of work at a time, 1 or more.
  package init(label: String, threads: Int = 16) {
    precondition(threads > 0, "work needs a thread")
    // Serial queues: concurrent ones share their threads with the rest of the process, and Dispatch adds threads slowly
    // while those block. Four blocked threads delayed all other work by seconds.
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
    if let thread { run(body, on: thread) }
  }

  /// Runs `body` and then the next work, each in a block of its own, which releases what it holds.
  private func run(_ body: @escaping @Sendable () -> Void, on thread: DispatchQueue) {
    thread.async { [self] in
      body()
      if let next = next(on: thread) { run(next, on: thread) }
    }
  }

  /// Returns the next work for a thread; nil if nothing waits, and then the thread is idle.
  private func next(on thread: DispatchQueue) -> (@Sendable () -> Void)? {
    state.withLock { state in
      defer { state.trim() }
      if let next = state.take() { return next }
      state.idle.append(thread)
      return nil
    }
  }
}
