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

  @Test(
    "at a start, a time that nothing proves is doubted for as long as it seems to have passed, at most for a day",
    arguments: [
      // seconds until the start, by the catalog's clock; whether the machine has run since, and for how many; how long
      // it's doubted, in seconds
      (600.0, nil, 600.0), (299, nil, 0), (-9000, nil, 0), (2_592_000, nil, 86_400), (8 * 3600, nil, 8 * 3600),
      (8 * 3600, 8 * 3600, 0), (2_592_000, 2_592_000, 0), (2_592_000, 60, 86_400), (700, 60, 86_400), (-700, 60, 0),
    ] as [(Double, Double?, Double)])
  func start(passed: Double, proven: Double?, wait: Double) {
    #expect(hear(0, at: 5 * Self.hour) == nil)
    let memory = watch.memory(boot: "a", sinceBoot: 5 * Self.hour)
    let now = proven.map { 5 * Self.hour + Int64($0 * 1000) } ?? Self.hour
    let catalog = Self.boot + 5 * Self.hour + Int64(passed * 1000)
    watch = ClockWatch()
    watch.hear(catalog, own: catalog, sinceBoot: now)
    guard let memory else { return #expect(Bool(false), "a time that was heard is kept") }
    watch.resume(memory, catalog, boot: proven == nil ? "b" : "a", sinceBoot: now)
    let end = now + Int64(wait * 1000)
    #expect(watch.doubt(sinceBoot: end) == nil)
    guard wait > 0 else { return #expect(watch.doubt(sinceBoot: now) == nil) }
    let (known, jumped) = (proven ?? 0, proven != nil)
    #expect(
      watch.doubt(sinceBoot: end - 1) == (jumped ? .jumped(seconds: passed - known) : .unproven(seconds: passed)))
    // What is left of the doubt outlives another start, at once, of the process and of the machine.
    for (boot, later) in [(jumped ? "a" : "b", now + Self.hour / 10), ("c", 0)] where wait > 360 {
      let kept = watch.memory(boot: jumped ? "a" : "b", sinceBoot: now + Self.hour / 10)
      var next = ClockWatch()
      next.resume(kept ?? memory, catalog + Self.hour / 10, boot: boot, sinceBoot: later)
      let end = later + Int64(wait * 1000) - Self.hour / 10
      #expect(next.doubt(sinceBoot: end - 1) != nil && next.doubt(sinceBoot: end) == nil, "\(boot)")
      // Unless the clock is set right.
      let right = catalog + Self.hour / 10 - Int64((passed - known) * 1000)
      next.hear(right, own: right, sinceBoot: later)
      #expect(next.doubt(sinceBoot: later) == nil, "\(boot)")
    }
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
