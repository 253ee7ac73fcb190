import Dispatch
import Jobs
import Synchronization
import Testing

struct WorkQueueTests {
  @Test("blocking all threads of one queue doesn't delay another, and waiting work runs in order")
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
