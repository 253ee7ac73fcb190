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

  /// Returns the sum of what `body` returns for each item. Blocks: the calling thread works, too, and alone if no
  /// helper is free. After an error no more items are begun, and it is thrown.
  func sum<Item: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws(StorageError) -> Int64
  ) throws(StorageError) -> Int64 {
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
    return try task.result.get()
  }

  private final class Task<Item: Sendable>: Sendable {
    private struct State {
      var next = 0
      var result = Result<Int64, StorageError>.success(0)
    }

    private let items: [Item]
    private let body: @Sendable (Item) throws(StorageError) -> Int64
    private let state = Mutex(State())

    init(_ items: [Item], _ body: @escaping @Sendable (Item) throws(StorageError) -> Int64) {
      (self.items, self.body) = (items, body)
    }

    var result: Result<Int64, StorageError> { state.withLock { $0.result } }

    func work() {
      while let item = takeNext() {
        do throws(StorageError) {
          let value = try body(item)
          state.withLock { $0.result = $0.result.map { $0 + value } }
        } catch {
          state.withLock { $0.result = .failure(error) }
        }
      }
    }

    private func takeNext() -> Item? {
      state.withLock { state in
        guard case .success = state.result, state.next < items.count else { return nil }
        defer { state.next += 1 }
        return items[state.next]
      }
    }
  }
}
