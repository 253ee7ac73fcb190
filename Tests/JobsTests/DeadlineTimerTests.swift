import Dispatch
import Synchronization
import Testing

@testable import Jobs

@Suite struct DeadlineTimerTests {
  private static let soon = DispatchTimeInterval.milliseconds(1)

  @Test("the check runs at the earliest of the deadlines, however late the others are")
  func earliest() async {
    let timer = DeadlineTimer(label: "test")
    await withCheckedContinuation { continuation in
      let waits = Mutex<CheckedContinuation<Void, Never>?>(continuation)
      let check: @Sendable (DispatchTime) -> DispatchTime? = { _ in
        waits.withLock { $0.take() }?.resume()
        return nil
      }
      timer.schedule(by: .now() + 10_000, check)
      timer.schedule(by: .now() + Self.soon, check)
    }
  }

  @Test("it runs again for the deadline that remains, and not before a tenth of a second has passed")
  func again() async {
    let timer = DeadlineTimer(label: "test")
    let times = Mutex<[DispatchTime]>([])
    await withCheckedContinuation { continuation in
      timer.schedule(by: .now() + Self.soon) { now in
        let count = times.withLock { times in
          times.append(now)
          return times.count
        }
        guard count == 3 else { return now }
        continuation.resume()
        return nil
      }
    }
    let ran = times.withLock { $0 }
    #expect(ran.count == 3)
    for (earlier, later) in zip(ran, ran.dropFirst()) { #expect(later >= earlier + 0.1) }
  }
}
