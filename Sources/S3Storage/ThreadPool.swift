import Dispatch
import Storage
import Synchronization

/// Threads that share another thread's work when that is mostly waiting for the store.
final class ThreadPool: Sendable {
  /// Queues without work. Serial ones, because concurrent ones share threads, of which the system starts few if they
  /// block.
  private let free: Mutex<[DispatchQueue]>
  private let mostOfCaller: Int

  /// Allows `most` threads at once, of which each caller gets at most `mostOfCaller`.
  init(label: String, most: Int, mostOfCaller: Int) {
    free = Mutex((0..<most).map { DispatchQueue(label: "\(label) \($0)") })
    self.mostOfCaller = mostOfCaller
  }

  /// The number of threads without work. For tests.
  var freeCount: Int { free.withLock(\.count) }

  /// Returns what `body` returns for each item, in order. Blocks: the calling thread works, too, and alone if no thread
  /// is free. The items are begun in order; after an error no more of them are, and it is thrown.
  func map<Item: Sendable, Value: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws(StorageError) -> Value
  ) throws(StorageError) -> [Value] {
    let task = Task(items, body)
    for thread in takeThreads(items.count - 1) {
      thread.async { [self] in
        task.work()
        free.withLock { $0.append(thread) }
      }
    }
    task.work()
    return try task.result()
  }

  private func takeThreads(_ count: Int) -> [DispatchQueue] {
    free.withLock { free in
      let taken = Array(free.suffix(max(0, min(count, mostOfCaller))))
      free.removeLast(taken.count)
      return taken
    }
  }

  private final class Task<Item: Sendable, Value: Sendable>: Sendable {
    private struct State {
      var next = 0
      var values: [Value?]
      var failure: StorageError?
    }

    private let items: [Item]
    /// The items that were begun and haven't ended. A thread that comes too late for any isn't waited for.
    private let underWay = DispatchGroup()
    private let body: @Sendable (Item) throws(StorageError) -> Value
    private let state: Mutex<State>

    init(_ items: [Item], _ body: @escaping @Sendable (Item) throws(StorageError) -> Value) {
      (self.items, self.body) = (items, body)
      state = Mutex(State(values: Array(repeating: nil, count: items.count)))
    }

    /// What was made, once all that was begun has ended. Call it when nothing is left to begin.
    func result() throws(StorageError) -> [Value] {
      underWay.wait()
      let (values, failure) = state.withLock { ($0.values, $0.failure) }
      if let failure { throw failure }
      return values.compactMap(\.self)
    }

    func work() {
      while let index = takeNext() {
        do throws(StorageError) {
          let value = try body(items[index])
          state.withLock { $0.values[index] = value }
        } catch {
          state.withLock { $0.failure = error }
        }
        underWay.leave()
      }
    }

    private func takeNext() -> Int? {
      state.withLock { state in
        guard state.failure == nil, state.next < items.count else { return nil }
        underWay.enter()
        defer { state.next += 1 }
        return state.next
      }
    }
  }
}
