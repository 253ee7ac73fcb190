import Terms

/// An instant until which something may take.
struct Deadline {
  let instant: Clock.Instant
  private let clock: Clock

  init(seconds: Double, by clock: Clock) { (instant, self.clock) = (clock.instant(after: seconds), clock) }

  /// Never negative.
  var secondsLeft: Double { max(0, -clock.seconds(since: instant)) }
  var isOver: Bool { instant <= clock.now }
}
