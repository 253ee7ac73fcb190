import Dispatch
import Glibc
import Storage
import Synchronization
import Testing

@testable import S3Storage

/// Work that several threads share.
@Suite struct ThreadPoolTests {
  /// Waits until so many threads are here at once.
  private final class Meeting: Sendable {
    private let others = DispatchSemaphore(value: 0)
    private let missing: Mutex<Int>

    init(of count: Int) { missing = Mutex(count) }

    func arrive() {
      let isLast = missing.withLock { missing in
        missing -= 1
        return missing == 0
      }
      if !isLast { others.wait() }
      others.signal()
    }
  }

  @Test("a caller and its threads work at once, and each item is done once")
  func atOnce() throws {
    let threads = ThreadPool(label: "test", most: 3, mostOfCaller: 3)
    let meeting = Meeting(of: 4)
    let done = Mutex<[Int]>([])
    let values = try threads.map(Array(0..<100)) { item in
      if item < 4 { meeting.arrive() }
      done.withLock { $0.append(item) }
      return 2 * item
    }
    #expect(values == (0..<100).map { 2 * $0 } && done.withLock { $0.sorted() } == Array(0..<100))
  }

  @Test("without a free thread, the caller does all of it")
  func alone() throws {
    let threads = ThreadPool(label: "test", most: 0, mostOfCaller: 3)
    #expect(try threads.map([1, 2, 3]) { $0 * 2 } == [2, 4, 6])
    #expect(try threads.map([Int]()) { $0 * 2 } == [])
  }

  @Test("a thread that comes too late isn't waited for, and helps again later")
  func late() throws {
    let threads = ThreadPool(label: "test", most: 1, mostOfCaller: 1)
    let (begun, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let first = DispatchQueue(label: "first caller")
    // The only thread has an item until `end`, while its caller waits for that.
    first.async {
      _ = try? threads.map([1, 2]) { _ in
        begun.signal()
        end.wait()
      }
    }
    begun.wait()
    begun.wait()
    #expect(try threads.map([1, 2, 3]) { $0 } == [1, 2, 3])
    end.signal()
    end.signal()
    first.sync {}
  }

  @Test("after an error nothing more is begun, and later calls have all threads again")
  func failing() throws {
    let threads = ThreadPool(label: "test", most: 2, mostOfCaller: 2)
    for _ in 0..<5 {
      let begun = Mutex(0)
      #expect(throws: StorageError.diskFull) {
        try threads.map(Array(0..<1000)) { (_) throws(StorageError) in
          begun.withLock { $0 += 1 }
          throw .diskFull
        }
      }
      #expect((1...3).contains(begun.withLock { $0 }))
    }
    while threads.freeCount < 2 { sched_yield() }
    let meeting = Meeting(of: 3)
    #expect(
      try threads.map([1, 2, 3]) { item in
        meeting.arrive()
        return item
      } == [1, 2, 3])
  }
}
