import Dispatch
import Glibc
import Synchronization
import Terms
import Testing

struct ThreadsTests {
  @Test("work that blocks runs beside other work, on threads of its own")
  func beside() {
    let threads = Threads()
    let (gate, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let names = Mutex<Set<pthread_t>>([pthread_self()])
    for _ in 0..<12 {
      let runs = threads.run {
        names.withLock { _ = $0.insert(pthread_self()) }
        done.signal()
        gate.wait()
        done.signal()
      }
      #expect(runs)
    }
    for _ in 0..<12 { done.wait() }
    #expect(names.withLock { $0.count } == 13)
    for _ in 0..<12 { gate.signal() }
    for _ in 0..<12 { done.wait() }
  }

  @Test("a thread that has done its work does the next")
  func reuse() {
    let threads = Threads()
    threads.prepare(1)
    let done = DispatchSemaphore(value: 0)
    let names = Mutex<Set<pthread_t>>([])
    for _ in 0..<100 {
      let runs = threads.run {
        names.withLock { _ = $0.insert(pthread_self()) }
        done.signal()
      }
      #expect(runs)
      done.wait()
      // Until it waits again.
      while threads.idleCount == 0 { sched_yield() }
    }
    #expect(names.withLock { $0.count } == 1)
  }
}
