import Dispatch
import Storage
import Synchronization

/// Runs blocking work that may wait for a store on another machine, on threads of its own: while the store hangs,
/// neither the catalog nor the disk waits for it. Thread-safe.
package final class StoreQueue: Sendable {
  private struct State {
    /// Queues without work.
    var idle: [DispatchQueue]
    var waiting: [@Sendable () -> Void] = []
    /// The first of `waiting` that hasn't begun.
    var next = 0

    var waitingCount: Int { waiting.count - next }

    mutating func takeNext() -> (@Sendable () -> Void)? {
      guard next < waiting.count else { return nil }
      defer { next += 1 }
      let work = waiting[next]
      if next >= 1024 {
        waiting.removeFirst(next)
        next = 0
      }
      return work
    }
  }

  private let state: Mutex<State>
  private let waitingLimit: Int
  /// Does all work instead; nil if the store is on another machine.
  private let shared: WorkQueue?

  /// Creates a queue with `threads` threads, on which at most `waitingLimit` pieces of work wait.
  package init(threads: Int = 48, waitingLimit: Int = 1000) {
    // Serial queues, because concurrent ones share threads, of which the system starts few if they block.
    let queues = (0..<threads).map { DispatchQueue(label: "store \($0)") }
    state = Mutex(State(idle: queues))
    (self.waitingLimit, shared) = (waitingLimit, nil)
  }

  /// Creates a queue whose work is done by another one, for a store in a folder.
  package init(on shared: WorkQueue) {
    state = Mutex(State(idle: []))
    (waitingLimit, self.shared) = (0, shared)
  }

  /// Runs `body` on a thread and returns its result. Throws `.storeUnreachable` without running it if too much waits.
  package func run<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    if let shared { return try await shared.run { () throws(any Error) in try body() } }
    return try await withCheckedThrowingContinuation { continuation in
      let isTaken = start { continuation.resume(with: Result { try body() }) }
      if !isTaken {
        continuation.resume(throwing: StorageError.storeUnreachable(detail: "\(waitingLimit) requests wait for it"))
      }
    }
  }

  /// Runs `body` on a thread without waiting for it. Returns false, without running it, if too much waits.
  @discardableResult
  package func start(_ body: @escaping @Sendable () -> Void) -> Bool {
    if let shared {
      shared.start(body)
      return true
    }
    let (queue, isTaken) = state.withLock { state -> (DispatchQueue?, Bool) in
      if let queue = state.idle.popLast() { return (queue, true) }
      guard state.waitingCount < waitingLimit else { return (nil, false) }
      state.waiting.append(body)
      return (nil, true)
    }
    if let queue { perform(body, on: queue) }
    return isTaken
  }

  private func perform(_ body: @escaping @Sendable () -> Void, on queue: DispatchQueue) {
    queue.async { [self] in
      body()
      let next = state.withLock { state -> (@Sendable () -> Void)? in
        let next = state.takeNext()
        if next == nil { state.idle.append(queue) }
        return next
      }
      if let next { perform(next, on: queue) }
    }
  }
}
