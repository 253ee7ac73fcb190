import Dispatch
import Synchronization

/// A clock that stands still until a test moves it.
///
/// It takes due actions in the order of their times and in the thread that moves it, each on its queue, and knows when
/// the work that it was told of (`Clock.async`) has ended. So after `advance` and `idle`, all has happened that this
/// work does by then, however busy the machine is.
package final class ManualClock: Sendable {
  private struct Timer {
    let due: Clock.Instant
    let queue: DispatchQueue
    let alarm: Clock.Alarm
  }

  private struct State {
    var now: Clock.Instant
    var wallMilliseconds: Int64
    var bootMilliseconds: Int64
    /// In the order of their times, and of their arrival.
    var timers: [Timer] = []
    var running = 0
    var onIdle: [CheckedContinuation<Void, Never>] = []
    var onWaiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []

    var waitingCount: Int { timers.count { $0.alarm.isPending } }

    mutating func move(to time: Clock.Instant) {
      guard time > now else { return }
      let milliseconds = Int64(((time - now) / .milliseconds(1)).rounded())
      now = time
      wallMilliseconds += milliseconds
      bootMilliseconds += milliseconds
    }
  }

  private let state: Mutex<State>

  /// Creates a clock that shows the machine's time.
  package init() {
    state = Mutex(
      State(
        now: Clock.system.now, wallMilliseconds: Clock.system.wallMilliseconds,
        bootMilliseconds: Clock.system.bootMilliseconds))
  }

  /// What the code to be tested gets.
  package var clock: Clock { Clock(hand: self) }

  var now: Clock.Instant { state.withLock { $0.now } }
  var wallMilliseconds: Int64 { state.withLock { $0.wallMilliseconds } }
  var bootMilliseconds: Int64 { state.withLock { $0.bootMilliseconds } }

  // MARK: Moving

  /// Moves the clock and takes the actions that are due by then. It shows each one's time meanwhile. Must not be called
  /// on an action's queue.
  package func advance(by seconds: Double) {
    advance(to: now + Clock.duration(seconds))
  }

  private func advance(to end: Clock.Instant) {
    while let timer = nextTimer(by: end) { timer.queue.sync { timer.alarm.fire() } }
    move(to: end)
  }

  /// The seconds until the next action; nil if there is none.
  package var secondsToNext: Double? { nextDue.map { ($0 - now) / .seconds(1) } }

  private var nextDue: Clock.Instant? { state.withLock { $0.timers.first { $0.alarm.isPending }?.due } }

  private func nextTimer(by end: Clock.Instant) -> Timer? {
    state.withLock { state -> Timer? in
      state.timers.removeAll { !$0.alarm.isPending }
      guard let timer = state.timers.first, timer.due <= end else { return nil }
      state.timers.removeFirst()
      state.move(to: timer.due)
      return timer
    }
  }

  private func move(to time: Clock.Instant) { state.withLock { $0.move(to: time) } }

  /// Moves from one action to the next, and lets the work end that each begins, until none is due within `seconds`.
  package func run(for seconds: Double) async {
    let end = now + Clock.duration(seconds)
    while true {
      await idle()
      guard let next = nextDue, next <= end else { return move(to: end) }
      advance(to: next)
    }
  }

  // MARK: Waiting for the code that is tested

  /// Whether no work is under way.
  package var isIdle: Bool { state.withLock { $0.running == 0 } }

  /// Returns once no work is under way.
  package func idle() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.running > 0 { state.onIdle.append(continuation) }
        return state.running == 0
      }
      if isIdle { continuation.resume() }
    }
  }

  /// The number of actions that wait for the clock to be moved.
  package var waitingCount: Int { state.withLock { $0.waitingCount } }

  /// Returns once at least `count` actions, sleeping tasks and blocked threads wait for the clock to be moved.
  package func waiting(_ count: Int = 1) async {
    await withCheckedContinuation { continuation in
      let areThere = state.withLock { state -> Bool in
        let areThere = state.waitingCount >= count
        if !areThere { state.onWaiting.append((count, continuation)) }
        return areThere
      }
      if areThere { continuation.resume() }
    }
  }

  // MARK: For the clock

  func insert(_ alarm: Clock.Alarm, _ seconds: Double, _ queue: DispatchQueue) {
    guard seconds > 0 else { return clock.async(on: queue) { alarm.fire() } }
    let ready = state.withLock { state -> [(count: Int, continuation: CheckedContinuation<Void, Never>)] in
      let due = state.now + Clock.duration(seconds)
      state.timers.removeAll { !$0.alarm.isPending }
      let place = state.timers.firstIndex { $0.due > due } ?? state.timers.count
      state.timers.insert(Timer(due: due, queue: queue, alarm: alarm), at: place)
      let count = state.waitingCount
      defer { state.onWaiting.removeAll { $0.count <= count } }
      return state.onWaiting.filter { $0.count <= count }
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  func begin() { state.withLock { $0.running += 1 } }

  func end() {
    let waiters = state.withLock { state in
      state.running -= 1
      guard state.running == 0 else { return [CheckedContinuation<Void, Never>]() }
      defer { state.onIdle = [] }
      return state.onIdle
    }
    for waiter in waiters { waiter.resume() }
  }
}
