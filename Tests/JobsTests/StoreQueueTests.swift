import Dispatch
import Jobs
import Storage
import Synchronization
import Testing

@Suite struct StoreQueueTests {
  @Test("as much work runs at once as there are threads, as much waits as may, and the rest is refused")
  func limits() async throws {
    let queue = StoreQueue(threads: 2, waitingLimit: 2)
    let gate = DispatchSemaphore(value: 0)
    let begun = Mutex<[Int]>([])
    let ended = DispatchGroup()
    func start(_ number: Int) -> Bool {
      ended.enter()
      let isTaken = queue.start {
        begun.withLock { $0.append(number) }
        gate.wait()
        ended.leave()
      }
      if !isTaken { ended.leave() }
      return isTaken
    }
    #expect((0..<6).map(start) == [true, true, true, true, false, false])
    await #expect(throws: StorageError.self) { try await queue.run { 1 } }
    for _ in 0..<4 { gate.signal() }
    await withCheckedContinuation { done in ended.notify(queue: .global()) { done.resume() } }
    #expect(begun.withLock { $0.sorted() } == [0, 1, 2, 3])
    #expect(try await queue.run { 1 } == 1)
  }

  @Test("results and errors come back, in any number")
  func results() async throws {
    let queue = StoreQueue(threads: 3, waitingLimit: 5000)
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<3000 { group.addTask { try await queue.run { number } } }
      return try await group.reduce(0, +)
    }
    #expect(sum == 4_498_500)
    await #expect(throws: StorageError.cancelled) { try await queue.run { throw StorageError.cancelled } }
  }
}
