import Dispatch
import Synchronization
import Terms

/// Calls a check when the earliest of many deadlines has passed. One timer serves them all and fires at most ten times
/// a second.
package final class DeadlineTimer: Sendable {
  private let queue: DispatchQueue
  private let clock: Clock
  private let next = Mutex<Clock.Instant?>(nil)

  /// Creates a timer whose checks run on a queue with this label.
  package init(label: String, _ clock: Clock) { (queue, self.clock) = (DispatchQueue(label: label), clock) }

  /// Runs `check` at the deadline, unless an earlier one has been scheduled: the check then runs at that, and again
  /// when the time it returns has passed. It gets the current time and returns the earliest deadline that remains, or
  /// nil if there are none. All callers must pass the same check.
  package func schedule(
    by deadline: Clock.Instant, _ check: @escaping @Sendable (Clock.Instant) -> Clock.Instant?
  ) {
    let isNeeded = next.withLock { next in
      guard next.map({ deadline < $0 }) ?? true else { return false }
      next = deadline
      return true
    }
    guard isNeeded else { return }
    clock.after(-clock.seconds(since: deadline), on: queue) { [self] in
      let isDue = next.withLock { next in
        // An earlier check has been scheduled since, which schedules the next one.
        guard next == deadline else { return false }
        next = nil
        return true
      }
      guard isDue else { return }
      let now = clock.now
      if let remaining = check(now) { schedule(by: max(remaining, now + .milliseconds(100)), check) }
    }
  }
}
