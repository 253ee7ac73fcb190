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

  /// Starts gated work, and remembers in which order it begins.
  private final class Gated: Sendable {
    let queue: StoreQueue
    let begun = Mutex<[String]>([])
    let gate = DispatchSemaphore(value: 0)
    let ended = DispatchGroup()

    init(threads: Int) { queue = StoreQueue(threads: threads, waitingLimit: 20) }

    func start(_ load: StoreQueue.Load, _ name: String) -> Bool {
      ended.enter()
      let isTaken = queue.start(as: load) { [self] in
        begun.withLock { $0.append(name) }
        gate.wait()
        ended.leave()
      }
      if !isTaken { ended.leave() }
      return isTaken
    }

    func transfer(of client: String) -> Bool { start(.transfer(Client(key: client)), client) }

    func finish(_ count: Int) async {
      for _ in 0..<count { gate.signal() }
      await withCheckedContinuation { done in ended.notify(queue: .global()) { done.resume() } }
    }
  }

  @Test("while transfers take all threads that they may, brief work goes on")
  func briefWork() async throws {
    let gated = Gated(threads: 6)
    for client in ["a", "b", "a", "b", "a", "b", "a", "b"] { #expect(gated.transfer(of: client)) }
    #expect(try await gated.queue.run { 1 } == 1)
    await gated.finish(8)
    #expect(gated.begun.withLock { $0.count } == 8)
  }

  @Test("one client's transfers leave threads to others', and as many wait as a client may have")
  func oneClient() async throws {
    let gated = Gated(threads: 6)
    // Three run, and ten wait.
    #expect((0..<14).map { _ in gated.transfer(of: "a") } == Array(repeating: true, count: 13) + [false])
    #expect(try await gated.queue.run(as: .transfer(Client(key: "b"))) { 1 } == 1)
    await gated.finish(13)
  }

  @Test("brief work that never ceases doesn't keep transfers waiting")
  func transfersBegin() async throws {
    let gated = Gated(threads: 6)
    for _ in 0..<16 { #expect(gated.start(.brief, "brief")) }
    #expect(gated.transfer(of: "a"))
    gated.gate.signal()
    while !gated.begun.withLock({ $0.contains("a") }) { await Task.yield() }
    let place = gated.begun.withLock { $0.firstIndex(of: "a") }
    #expect(place ?? .max <= 6, "the first thread that was free took it")
    await gated.finish(16)
  }

  private final class Counter: Sendable {
    let count = Mutex(0)
  }

  /// Counts when it is destroyed.
  private final class Held: Sendable {
    private let gone: Counter

    init(_ gone: Counter) { self.gone = gone }

    deinit { gone.count.withLock { $0 += 1 } }
  }

  @Test("what work holds is released when the work ends, whether or not more work waits")
  func released() async throws {
    // One thread, so that each piece of work has ended before the next one begins.
    let queue = StoreQueue(threads: 1)
    let gate = DispatchSemaphore(value: 0)
    let gone = Counter()
    let seen = Mutex<[Int]>([])
    func start(_ body: @escaping @Sendable () -> Void) {
      let held = Held(gone)
      queue.start { withExtendedLifetime(held, body) }
    }
    start { gate.wait() }
    for _ in 0..<4 { start { seen.withLock { $0.append(gone.count.withLock(\.self)) } } }
    gate.signal()
    try await queue.run {}
    #expect(seen.withLock { $0 } == [1, 2, 3, 4] && gone.count.withLock(\.self) == 5)
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
