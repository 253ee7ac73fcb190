import Testing

@testable import Storage

/// When the catalog's time may decide about deletions.
@Suite final class ClockWatchTests {
  private static let (hour, day): (Int64, Int64) = (3_600_000, 86_400_000)
  /// When this machine was started, by a right clock.
  private static let boot: Int64 = 1_800_000_000_000
  private var watch = ClockWatch()

  /// Hears of clocks that are wrong by some seconds, so long after the machine was started.
  private func hear(_ catalog: Double, own: Double = 0, at now: Int64) -> ClockDoubt? {
    watch.hear(
      Self.boot + now + Int64(catalog * 1000), own: Self.boot + now + Int64(own * 1000), sinceBoot: now)
    return watch.doubt(sinceBoot: now)
  }

  @Test func clocksThatAgreeWithinMinutesAreNotDoubted() {
    for (number, error) in [0.0, 299, -299, 1, 300].enumerated() {
      #expect(hear(error / 2, own: -error / 2, at: Int64(number) * Self.hour) == nil)
    }
  }

  @Test("a database whose clock differs from this machine's by more is doubted for as long as it does")
  func difference() {
    #expect(hear(0, at: 0) == nil)
    #expect(hear(2_592_000, at: Self.hour) == .differs(seconds: 2_592_000))
    #expect(hear(2_592_000, at: 40 * Self.day) == .differs(seconds: 2_592_000))
    #expect(hear(0, at: 41 * Self.day) == nil)
    #expect(hear(-301, at: 42 * Self.day) == .differs(seconds: -301))
    #expect(watch.difference == -301_000)
  }

  @Test("a node that starts when the database's clock is wrong already doubts it")
  func firstLook() {
    #expect(hear(301, at: 0) == .differs(seconds: 301))
  }

  @Test("a time that jumps ahead is doubted for a day, even if this machine's clock jumps with it")
  func jump() {
    #expect(hear(0, at: 0) == nil)
    #expect(hear(2_592_000, own: 2_592_000, at: Self.hour) == .jumped(seconds: 2_592_000))
    #expect(hear(2_592_000, own: 2_592_000, at: 24 * Self.hour) == .jumped(seconds: 2_592_000))
    #expect(watch.doubt(sinceBoot: 25 * Self.hour) == nil)
    #expect(hear(2_592_000, own: 2_592_000, at: 26 * Self.hour) == nil)
  }

  @Test func aTimeThatIsSetRightAgainIsNotDoubtedAnyMore() {
    #expect(hear(0, at: 0) == nil)
    #expect(hear(1000, own: 1000, at: Self.hour) == .jumped(seconds: 1000))
    #expect(hear(0, at: 2 * Self.hour) == nil)
    #expect(hear(1000, own: 1000, at: 3 * Self.hour) == .jumped(seconds: 1000))
  }

  @Test("a second jump begins the day again")
  func secondJump() {
    #expect(hear(0, at: 0) == nil)
    #expect(hear(1000, own: 1000, at: Self.hour) == .jumped(seconds: 1000))
    #expect(hear(2000, own: 2000, at: 20 * Self.hour) == .jumped(seconds: 2000))
    #expect(hear(2000, own: 2000, at: 43 * Self.hour) == .jumped(seconds: 2000))
    #expect(hear(2000, own: 2000, at: 44 * Self.hour) == nil)
  }

  @Test func aTimeThatGoesBackIsNoJump() {
    #expect(hear(1000, own: 1000, at: 0) == nil)
    #expect(hear(0, at: Self.hour) == nil)
  }

  @Test("time that passes while nobody looks, as during a pause of the whole machine, is no jump")
  func pause() {
    #expect(hear(0, at: 0) == nil)
    #expect(hear(0, at: 90 * Self.day) == nil)
  }
}
