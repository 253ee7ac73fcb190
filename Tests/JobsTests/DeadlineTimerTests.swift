import Synchronization
import Terms
import Testing

@testable import Jobs

@Suite struct DeadlineTimerTests {
  private let hand = ManualClock()
  private final class Times: Sendable {
    let all = Mutex<[Double]>([])
  }
  private let times = Times()

  /// Has `timer` check at each of the deadlines, and say `count` times that another remains.
  private func schedule(_ deadlines: [Double], again count: Int) {
    let (clock, timer) = (hand.clock, DeadlineTimer(label: "test", hand.clock))
    let start = clock.now
    for seconds in deadlines {
      timer.schedule(by: clock.instant(after: seconds)) { [times] now in
        let checks = times.all.withLock { times in
          times.append((now - start) / .seconds(1))
          return times.count
        }
        return checks <= count ? now : nil
      }
    }
    hand.advance(by: 20_000)
  }

  @Test("the check runs at the earliest of the deadlines, however late the others are")
  func earliest() {
    schedule([10_000, 0.001], again: 0)
    #expect(times.all.withLock(\.self) == [0.001])
  }

  @Test("it runs again for the deadline that remains, and not before a tenth of a second has passed")
  func again() {
    schedule([1], again: 2)
    #expect(times.all.withLock(\.self) == [1, 1.1, 1.2])
  }
}
