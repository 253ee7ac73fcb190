import Dispatch
import Synchronization
import Terms
import Testing

@Suite struct ClockTests {
  private let hand = ManualClock()
  private var clock: Clock { hand.clock }
  private let queue = DispatchQueue(label: "test")

  private final class Notes: Sendable {
    private let notes = Mutex<[String]>([])
    func add(_ note: String) { notes.withLock { $0.append(note) } }
    var all: [String] { notes.withLock(\.self) }
  }

  @Test("due actions are taken in the order of their times, each at its own time, before the move ends")
  func order() {
    let (notes, start) = (Notes(), clock.now)
    for seconds in [3.0, 1, 2, 1] {
      clock.after(seconds, on: queue) { [clock] in notes.add("\(seconds) at \(clock.seconds(since: start))") }
    }
    hand.advance(by: 2)
    #expect(notes.all == ["1.0 at 1.0", "1.0 at 1.0", "2.0 at 2.0"])
    #expect(hand.secondsToNext == 1)
    hand.advance(by: 0.5)
    #expect(notes.all.count == 3)
    hand.advance(by: 100)
    #expect(notes.all.last == "3.0 at 3.0" && clock.seconds(since: start) == 102.5 && hand.secondsToNext == nil)
  }

  @Test("an action that plans another one within the same move is followed by it")
  func chain() {
    let notes = Notes()
    @Sendable func tick() {
      notes.add("tick")
      clock.after(10, on: queue, tick)
    }
    tick()
    hand.advance(by: 60)
    #expect(notes.all.count == 7)
  }

  @Test("a canceled action is dropped with what it holds", arguments: [true, false])
  func cancellation(isManual: Bool) {
    weak var held: Notes?
    let alarm: Clock.Alarm
    do {
      let notes = Notes()
      held = notes
      alarm = (isManual ? clock : .system).after(3600, on: queue) { notes.add("never") }
    }
    #expect(held != nil)
    alarm.cancel()
    #expect(held == nil)
    hand.advance(by: 7200)
  }

  @Test("what is due at once is taken without a move, and is work under way until then")
  func atOnce() async {
    let notes = Notes()
    let gate = DispatchSemaphore(value: 0)
    clock.async(on: queue) { gate.wait() }
    for seconds in [0, -1, -Double.infinity] { clock.after(seconds, on: queue) { notes.add("\(seconds)") } }
    #expect(!hand.isIdle && notes.all.isEmpty)
    gate.signal()
    await hand.idle()
    #expect(notes.all == ["0.0", "-1.0", "-inf"] && hand.isIdle)
  }

  @Test("idle waits for work that begins other work")
  func idle() async {
    let notes = Notes()
    @Sendable func step(_ left: Int) {
      notes.add("\(left)")
      if left > 0 { clock.async(on: DispatchQueue(label: "step")) { step(left - 1) } }
    }
    clock.async(on: queue) { step(20) }
    await hand.idle()
    #expect(notes.all.count == 21)
  }

  @Test("a task sleeps until the clock is moved, or until it is canceled")
  func sleep() async throws {
    let sleeper = Task { [clock] in try await clock.sleep(5) }
    await hand.waiting()
    hand.advance(by: 5)
    try await sleeper.value
    for isEarly in [true, false] {
      let canceled = Task { [clock] in try await clock.sleep(.infinity) }
      if !isEarly { await hand.waiting() }
      canceled.cancel()
      await #expect(throws: CancellationError.self) { try await canceled.value }
    }
  }

  @Test("a thread is blocked until the clock is moved, or until it is signaled")
  func blocked() async {
    let (notes, semaphore) = (Notes(), DispatchSemaphore(value: 0))
    let waiter: @Sendable () -> Void = { [clock] in notes.add("\(clock.wait(for: semaphore, seconds: 1))") }
    clock.async(on: queue, waiter)
    await hand.waiting()
    semaphore.signal()
    await hand.idle()
    #expect(notes.all == ["true"] && hand.waitingCount == 0)
    clock.async(on: queue, waiter)
    clock.async(on: DispatchQueue(label: "paused")) { [clock] in clock.pause(1) }
    await hand.waiting(2)
    hand.advance(by: 1)
    await hand.idle()
    #expect(notes.all == ["true", "false"])
  }

  @Test("a run goes from action to action, each with the work that it begins, up to its end")
  func run() async {
    let (notes, start) = (Notes(), clock.now)
    @Sendable func step() {
      clock.async(on: DispatchQueue(label: "step")) { [clock] in
        notes.add("\(clock.seconds(since: start))")
        clock.after(10, on: clock.seconds(since: start) < 35 ? queue : nil, step)
      }
    }
    step()
    await hand.run(for: 45)
    #expect(notes.all == ["0.0", "10.0", "20.0", "30.0", "40.0"] && clock.seconds(since: start) == 45)
  }

  @Test("the time of day and the time since the machine's start move with the clock")
  func otherTimes() {
    let (day, boot) = (clock.wallMilliseconds, clock.bootMilliseconds)
    hand.advance(by: 1.5)
    #expect(clock.wallMilliseconds == day + 1500 && clock.bootMilliseconds == boot + 1500)
  }

  @Test("the machine's clock takes actions, and wakes tasks and threads, after the time")
  func system() async throws {
    let (clock, done) = (Clock.system, DispatchSemaphore(value: 0))
    let start = clock.now
    clock.after(0.001) { done.signal() }
    #expect(clock.wait(for: done, seconds: 600))
    #expect(!clock.wait(for: done, seconds: 0.001))
    try await clock.sleep(0.001)
    clock.pause(0.001)
    #expect(clock.seconds(since: start) >= 0.004)
  }
}
