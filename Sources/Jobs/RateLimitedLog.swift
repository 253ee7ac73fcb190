import Synchronization
import Terms

/// A log of failures that may come often: writes at most one line a minute.
final class RateLimitedLog: Sendable {
  private let log: any JobLog
  private let clock: Clock
  private let last = Mutex<Clock.Instant?>(nil)

  init(_ log: any JobLog, _ clock: Clock) { (self.log, self.clock) = (log, clock) }

  func failure(_ message: String, _ metadata: [String: String]) {
    let isDue = last.withLock { last in
      if let last, clock.seconds(since: last) < 60 { return false }
      last = clock.now
      return true
    }
    if isDue { log.failure(message, metadata) }
  }
}
