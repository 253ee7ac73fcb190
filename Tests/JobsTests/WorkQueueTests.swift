import Dispatch
import Jobs
import Synchronization
import Testing

struct WorkQueueTests {
  @Test("whoever blocks all threads of one queue leaves another its own, and what waits is done in order")
  func blocked() async {
    let (stuck, free) = (WorkQueue(label: "stuck", threads: 80), WorkQueue(label: "free", threads: 1))
    let (begun, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    for _ in 0..<80 {
      stuck.start {
        begun.signal()
        end.wait()
      }
    }
    await free.run { for _ in 0..<80 { begun.wait() } }
    let order = Mutex([Int]())
    for number in 0..<3000 { free.start { order.withLock { $0.append(number) } } }
    let done = await free.run { order.withLock(\.self) }
    #expect(done == Array(0..<3000))
    for _ in 0..<80 { end.signal() }
    #expect(await stuck.run { true })
  }
}
