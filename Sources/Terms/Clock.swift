import Dispatch
import Glibc
import Synchronization

// Everything that waits, expires, retries or measures does it by a clock that was given to it: the machine's in a
// service, one that is moved by hand in tests. So this is the only file that reads the machine's clock for them;
// deploy/lint rejects other places, except those that it lists with their reasons.
//
// Workers may only use what needs no thread of Dispatch: `now`, `wallMilliseconds`, `seconds(since:)`, `pause`.

/// A source of time: the machine's, or a `ManualClock`.
package struct Clock: Sendable {
  /// A moment of a clock that never jumps.
  package typealias Instant = ContinuousClock.Instant

  /// The machine's clock.
  package static let system = Clock(hand: nil)

  /// What moves the clock; nil for the machine's.
  let hand: ManualClock?

  /// Where actions run that name no queue. They must be brief.
  private static let queue = DispatchQueue(label: "clock")

  // MARK: Reading

  /// The current moment.
  package var now: Instant { hand?.now ?? .now }

  /// The time of day in milliseconds since 1970, UTC. It jumps whenever somebody sets the machine's clock.
  package var wallMilliseconds: Int64 {
    if let hand { return hand.wallMilliseconds }
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// Milliseconds since this machine was started, including those in which it slept. Nobody can set that clock.
  package var bootMilliseconds: Int64 {
    if let hand { return hand.bootMilliseconds }
    var time = timespec()
    unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// Returns the moment `seconds` from now; infinitely many count as 30 years.
  package func instant(after seconds: Double) -> Instant { now + Self.duration(seconds) }

  /// Returns the seconds since a moment; negative if it is still to come.
  package func seconds(since start: Instant) -> Double { (now - start) / .seconds(1) }

  static func duration(_ seconds: Double) -> Duration { .seconds(min(max(seconds, -1e9), 1e9)) }

  // MARK: Waiting

  /// An action to be taken later.
  package final class Alarm: Sendable {
    private let action: Mutex<(@Sendable () -> Void)?>

    fileprivate init(_ action: @escaping @Sendable () -> Void) { self.action = Mutex(action) }

    var isPending: Bool { action.withLock { $0 != nil } }

    func fire() { take()?() }

    /// Drops the action, unless it has begun.
    package func cancel() { _ = take() }

    private func take() -> (@Sendable () -> Void)? {
      action.withLock { action in
        defer { action = nil }
        return action
      }
    }
  }

  /// Takes an action on `queue` in `seconds`, or soon if that isn't positive. Without a queue, it must be brief.
  @discardableResult
  package func after(
    _ seconds: Double, on queue: DispatchQueue? = nil, _ action: @escaping @Sendable () -> Void
  ) -> Alarm {
    let alarm = Alarm(action)
    if let hand {
      hand.insert(alarm, seconds, queue ?? Self.queue)
    } else {
      (queue ?? Self.queue).asyncAfter(deadline: .now() + max(seconds, 0)) { alarm.fire() }
    }
    return alarm
  }

  /// Returns after `seconds`. Throws at once if the caller's Task is canceled.
  package func sleep(_ seconds: Double) async throws {
    let waiter = Mutex<CheckedContinuation<Void, Never>?>(nil)
    let wake: @Sendable () -> Void = {
      waiter.withLock { waiter in
        defer { waiter = nil }
        return waiter
      }?.resume()
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        waiter.withLock { $0 = continuation }
        after(seconds, wake)
        // If the Task was canceled before this point, `onCancel` found no continuation to resume.
        if Task.isCancelled { wake() }
      }
    } onCancel: {
      wake()
    }
    try Task.checkCancellation()
  }

  /// Blocks the calling thread for `seconds`.
  package func pause(_ seconds: Double) {
    if let hand {
      // While it is blocked, the work waits for the clock to be moved, so that it isn't under way.
      let (end, isCounted) = (DispatchSemaphore(value: 0), Self.isCounted)
      after(seconds) {
        if isCounted { hand.begin() }
        end.signal()
      }
      if isCounted { hand.end() }
      end.wait()
    } else {
      let end = instant(after: seconds)
      while case let left = -self.seconds(since: end), left > 0 { usleep(UInt32(min(left, 0.9) * 1e6) + 1) }
    }
  }

  /// Blocks the calling thread until the semaphore is signaled, or for `seconds`. Returns false in the second case.
  ///
  /// A signal at the very moment at which the time ends may be lost, so each wait needs a semaphore of its own, or a
  /// caller to which signals are only hints.
  package func wait(for semaphore: DispatchSemaphore, seconds: Double) -> Bool {
    guard hand != nil else { return semaphore.wait(timeout: .now() + max(seconds, 0)) == .success }
    let isLate = Atomic(false)
    let alarm = after(seconds) {
      isLate.store(true, ordering: .sequentiallyConsistent)
      semaphore.signal()
    }
    semaphore.wait()
    alarm.cancel()
    return !isLate.load(ordering: .sequentiallyConsistent)
  }

  /// Blocks the calling thread until the group ends, or for `seconds`. Returns false in the second case.
  package func wait(for group: DispatchGroup, seconds: Double) -> Bool {
    let ended = DispatchSemaphore(value: 0)
    group.notify(queue: Self.queue) { ended.signal() }
    return wait(for: ended, seconds: seconds)
  }

  // MARK: Work under way

  /// Has a clock that is moved by hand count something as under way until `end`.
  package func begin() { hand?.begin() }

  /// Ends what `begin` began.
  package func end() { hand?.end() }

  /// Runs work on a queue, soon. A clock that is moved by hand counts it until it has ended.
  package func async(on queue: DispatchQueue, _ work: @escaping @Sendable () -> Void) {
    guard let hand else { return queue.async(execute: work) }
    hand.begin()
    queue.async {
      Self.$isCounted.withValue(true) { work() }
      hand.end()
    }
  }

  /// Whether the current thread does work that is counted.
  @TaskLocal private static var isCounted = false
}
