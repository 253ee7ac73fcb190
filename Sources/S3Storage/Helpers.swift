import Dispatch
import Storage
import Synchronization

/// Threads that help others with work of which much is waiting for the store.
final class Helpers: Sendable {
  private let queue: DispatchQueue
  private let free: DispatchSemaphore
  private let mostOfCaller: Int

  /// Allows `most` threads at once, of which each caller gets at most `mostOfCaller`.
  init(label: String, most: Int, mostOfCaller: Int) {
    queue = DispatchQueue(label: label, attributes: .concurrent)
    free = DispatchSemaphore(value: most)
    self.mostOfCaller = mostOfCaller
  }

  /// Returns what `body` returns for each item, in order. Blocks: the calling thread works, too, and alone if no helper
  /// is free. The items are begun in order; after an error no more of them are, and it is thrown.
  func map<Item: Sendable, Value: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws(StorageError) -> Value
  ) throws(StorageError) -> [Value] {
    let task = Task(items, body)
    let group = DispatchGroup()
    for _ in 0..<max(0, min(items.count - 1, mostOfCaller)) where free.wait(timeout: .now()) == .success {
      queue.async(group: group) { [free] in
        task.work()
        free.signal()
      }
    }
    task.work()
    group.wait()
    return try task.result()
  }

  private final class Task<Item: Sendable, Value: Sendable>: Sendable {
    private struct State {
      var next = 0
      var values: [Value?]
      var failure: StorageError?
    }

    private let items: [Item]
    private let body: @Sendable (Item) throws(StorageError) -> Value
    private let state: Mutex<State>

    init(_ items: [Item], _ body: @escaping @Sendable (Item) throws(StorageError) -> Value) {
      (self.items, self.body) = (items, body)
      state = Mutex(State(values: Array(repeating: nil, count: items.count)))
    }

    func result() throws(StorageError) -> [Value] {
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
      }
    }

    private func takeNext() -> Int? {
      state.withLock { state in
        guard state.failure == nil, state.next < items.count else { return nil }
        defer { state.next += 1 }
        return state.next
      }
    }
  }
}
