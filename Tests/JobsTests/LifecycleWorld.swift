import PresentRows
import Processing
import Randomness
import Storage
import Terms
import Workers

@testable import Jobs

/// Simulates everything around `JobLifecycle`: rows, worker threads, children, timers, clients and a service that stops
/// or crashes. Pending steps run in random order, and every action is checked against the invariants.
struct LifecycleWorld {
  /// A pending step.
  private enum Step {
    case claim(JobID)
    case prepare(JobID)
    case child(JobID)
    case record(JobID, JobLifecycle.Ending)
    case clear(Job)
    /// An event, or a timer, that hasn't reached the lifecycle yet.
    case event(JobLifecycle.Event)
  }

  private struct Child {
    var verdict: JobLifecycle.Verdict?
    var isKilled = false
  }

  /// A job's row, and what has happened to the job since the service started.
  private struct Row {
    var job: Job
    var child: Child?
    var lastChild: (verdict: JobLifecycle.Verdict?, exit: WorkerExit)?
    /// Whether a worker thread is writing its row or its files.
    var isBeingWritten = false
    var cancelHasCome = false
    var starts = 0
    var clears = 0
    var forgets = 0
    /// Whether it has been submitted since the service started.
    var isLive = false
    /// Whether its child's lease was lost.
    var leaseIsLost = false
  }

  static let limits = JobLifecycle.Limits(
    places: 2, maximumAttempts: 3, retryPauseSeconds: 1, stallSeconds: 80, secondsPerProcessorSecond: 2)

  private var random: TestRandom
  private var lifecycle = JobLifecycle(Self.limits)
  private var rows: [JobID: Row] = [:]
  /// The jobs in the order of submission, because a dictionary's order differs between processes.
  private var order: [JobID] = []
  private var pending: [Step] = []
  private var now = 0.0
  private var isStopping = false
  private var isStopped = false
  /// The violated invariants.
  private(set) var violations: [String] = []
  private(set) var events = 0
  private(set) var results = 0

  init(_ random: TestRandom) { self.random = random }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  private mutating func check(_ condition: Bool, _ message: String) {
    if !condition { violations.append(message) }
  }

  // MARK: From a start of the service to its end

  /// Queues the unfinished jobs, as `JobRunner.resume` does.
  private mutating func begin() {
    (lifecycle, pending, isStopping, isStopped) = (JobLifecycle(Self.limits), [], false, false)
    for id in order {
      guard var row = rows[id] else { continue }
      (row.child, row.lastChild, row.isBeingWritten, row.cancelHasCome) = (nil, nil, false, false)
      (row.forgets, row.isLive) = (0, false)
      if row.job.state == .running {
        row.job.state = .queued
        row.job.interruptions += 1
      }
      rows[id] = row
      if row.job.state == .queued { pending.append(submission(of: id)) }
    }
  }

  private func submission(of id: JobID) -> Step {
    .event(
      .submitted(id, WaveformJob.cost(samples: 1), Client(key: "\((order.firstIndex(of: id) ?? 0) % 2)")))
  }

  /// Runs until no steps are pending, or until the service has stopped or crashed. Meanwhile, `jobs` jobs are submitted
  /// and some are canceled.
  mutating func live(jobs: Int, cancelling: Bool, ending: Bool) {
    begin()
    var coming = jobs
    var stepsLeft = ending ? Int.random(in: 1..<80, using: &random) : .max
    while !pending.isEmpty || coming > 0 {
      now += chance(3) ? 100 : Double.random(in: 0..<3, using: &random)
      if coming > 0, pending.isEmpty || chance(20) {
        let job = Job(kind: .waveform, recording: RecordingID())
        rows[job.id] = Row(job: job)
        order.append(job.id)
        pending.append(submission(of: job.id))
        coming -= 1
      } else if cancelling, chance(4) {
        cancelAny()
      } else if ending, chance(2), let id = order.filter({ rows[$0]?.child != nil }).randomElement(using: &random) {
        rows[id]?.leaseIsLost = true
        take(.leaseLost(id))
      } else {
        go(pending.remove(at: Int.random(in: pending.indices, using: &random)))
      }
      stepsLeft -= 1
      if stepsLeft == 0 {
        // A crash: nothing is cleaned up.
        if chance(30) { return leaveTheRestToTheNextStart() }
        isStopping = true
        take(.stop)
      }
      if isStopped { return leaveTheRestToTheNextStart() }
    }
    check(!isStopping, "a stop never completed")
  }

  /// The next start removes the files of canceled jobs.
  private mutating func leaveTheRestToTheNextStart() {
    for id in order where rows[id]?.job.state == .cancelled { rows[id]?.clears = 1 }
  }

  private var unfinished: [JobID] { order.filter { rows[$0]?.job.state.isFinished == false } }

  /// Cancels a job at random. The row is written first; the event reaches the lifecycle later.
  private mutating func cancelAny() {
    guard let id = unfinished.randomElement(using: &random), let job = cancel(id) else { return }
    pending.append(.event(.cancelled(job)))
  }

  private mutating func cancel(_ id: JobID) -> Job? {
    rows[id]?.job.state = .cancelled
    return rows[id]?.job
  }

  // MARK: Pending steps

  private mutating func go(_ step: Step) {
    switch step {
    case .claim(let id): claim(id)
    case .prepare(let id):
      rows[id]?.isBeingWritten = false
      let fence = WorkerFence(memoryBytes: 1, processorSeconds: 100, outputBytes: 1)
      let isReady = chance(85)
      let fault = chance(50) ? JobLifecycle.Event.storeFailed(id, .storeIsUnavailable) : .notBegun(id, failure())
      pending.append(.event(isReady ? .prepared(id, fence) : fault))
    case .child(let id): goOn(child: id)
    case .record(let id, let ending):
      rows[id]?.isBeingWritten = false
      pending.append(.event(.recorded(id, recorded(ending, id))))
    case .clear(let job):
      rows[job.id]?.isBeingWritten = false
      pending.append(.event(.cleared(job.id)))
    case .event(let event): take(event)
    }
  }

  private mutating func failure() -> WorkerFailure? {
    chance(50) ? nil : WorkerFailure(code: "code", detail: "It failed.", retry: chance(50))
  }

  private mutating func claim(_ id: JobID) {
    guard var row = rows[id] else { return }
    row.isBeingWritten = false
    let event: JobLifecycle.Event
    if row.job.state.isFinished {
      event = .refused(id, row.job.state == .cancelled ? .cancelled(row.job) : .over)
    } else if chance(5) {
      event = .notBegun(id, failure())
    } else {
      row.job.state = .running
      row.job.attempts += 1
      event = .claimed(
        id, attempts: row.job.attempts, failures: row.job.failures, losses: row.job.losses)
    }
    rows[id] = row
    pending.append(.event(event))
  }

  /// A child makes progress, reports, or exits. A killed child may still do all of this before it exits.
  private mutating func goOn(child id: JobID) {
    guard let child = rows[id]?.child else { return }
    if !child.isKilled || chance(30) {
      if chance(40) {
        pending.append(.child(id))
        return take(.progressed(id, diskIsFull: chance(3)))
      }
      if chance(60) {
        let verdict = chance(70) ? JobLifecycle.Verdict.result : failure().map { .failure($0) }
        rows[id]?.child?.verdict = verdict
        pending.append(.child(id))
        return take(.reported(id, verdict))
      }
    }
    let exit: WorkerExit = child.isKilled && chance(80) || chance(20) ? .signal(9) : .status(chance(70) ? 0 : 1)
    rows[id]?.lastChild = (child.verdict, exit)
    rows[id]?.child = nil
    take(.exited(id, exit))
  }

  /// Records the end of an attempt as `JobRecords` does.
  private mutating func recorded(_ ending: JobLifecycle.Ending, _ id: JobID) -> JobLifecycle.Recorded {
    guard let job = rows[id]?.job else { return .over(with: []) }
    if job.state == .cancelled { return .unwanted(job) }
    switch ending {
    case .result:
      if chance(10) { return .again }
      rows[id]?.job.state = .succeeded
      results += 1
      return .over(with: [])
    case .retry:
      rows[id]?.job.state = .queued
      return .again
    case .failure(let failure):
      if chance(30) { return .unwritten(failure) }
      rows[id]?.job.state = .failed
      return .over(with: chance(20) ? unfinished.first.flatMap { cancel($0) }.map { [$0] } ?? [] : [])
    case .interruption:
      rows[id]?.job.state = .queued
      rows[id]?.job.interruptions += 1
      return .over(with: [])
    case .postponement:
      if job.postponements == Job.postponementLimit {
        rows[id]?.job.state = .failed
        return .over(with: [])
      }
      rows[id]?.job.state = .queued
      rows[id]?.job.interruptions += 1
      rows[id]?.job.postponements += 1
      return .postponed(seconds: 15)
    }
  }

  // MARK: The lifecycle

  private mutating func take(_ event: JobLifecycle.Event) {
    events += 1
    if case .submitted(let id, _, _) = event { rows[id]?.isLive = true }
    if case .cancelled(let job) = event { rows[job.id]?.cancelHasCome = true }
    if case .recorded(_, .over(let others)) = event { for job in others { rows[job.id]?.cancelHasCome = true } }
    for action in lifecycle.on(event, at: now) { perform(action) }
    for row in rows.values {
      guard let child = row.child, isStopping || row.cancelHasCome else { continue }
      check(child.isKilled, "a child survived a stop or a cancellation")
    }
  }

  private mutating func perform(_ action: JobLifecycle.Action) {
    switch action {
    case .claim(let id, _):
      check(!isStopping && rows[id]?.cancelHasCome == false, "claimed after a stop or a cancellation")
      work(on: id, .claim(id))
    case .prepare(let id): work(on: id, .prepare(id))
    case .start(let id, let idlePlaces):
      check(rows[id]?.child == nil, "a second child")
      check(rows[id]?.isBeingWritten == false, "a child while a writer is at work")
      check(!isStopping && rows[id]?.cancelHasCome == false, "started after a stop or a cancellation")
      check((0..<Self.limits.places).contains(idlePlaces), "more idle places than exist")
      rows[id]?.child = Child()
      rows[id]?.leaseIsLost = false
      rows[id]?.starts += 1
      check(rows.values.count { $0.child != nil } <= Self.limits.places, "more children than places")
      let started = (rows[id]?.starts ?? 0) - (rows[id]?.job.losses ?? 0)
      check(started <= Self.limits.maximumAttempts, "too many attempts")
      pending.append(.child(id))
    case .kill(let id):
      check(rows[id]?.child != nil, "killed without a child")
      rows[id]?.child?.isKilled = true
    case .record(let id, let ending):
      check(ending: ending, id)
      work(on: id, .record(id, ending))
    case .hold(let id, _): pending.append(.event(.holdEnded(id)))
    case .pause(let id, _): pending.append(.event(.pauseEnded(id)))
    case .clear(let job):
      check(rows[job.id]?.child == nil, "cleared while a child runs")
      check(rows[job.id]?.job.state == .cancelled, "cleared without a cancellation")
      rows[job.id]?.clears += 1
      check(rows[job.id]?.clears == 1, "cleared again")
      work(on: job.id, .clear(job))
    case .forget(let id):
      rows[id]?.forgets += 1
      check(rows[id]?.forgets == 1, "forgotten again")
    case .watch: pending.append(.event(.tick))
    case .drained: check(false, "drained without being asked")
    case .stopped:
      check(isStopping && !isStopped, "stopped without being asked")
      check(rows.values.allSatisfy { $0.child == nil }, "stopped while a child runs")
      check(rows.values.allSatisfy { !$0.isBeingWritten }, "stopped while a writer is at work")
      for row in rows.values where row.cancelHasCome { check(row.clears == 1, "stopped before clearing") }
      isStopped = true
    }
  }

  private mutating func work(on id: JobID, _ step: Step) {
    check(rows[id]?.isBeingWritten == false, "a second writer")
    rows[id]?.isBeingWritten = true
    pending.append(step)
  }

  private mutating func check(ending: JobLifecycle.Ending, _ id: JobID) {
    guard let row = rows[id] else { return }
    check(row.child == nil, "recorded while a child runs")
    switch ending {
    case .result:
      check(row.lastChild.map { $0.verdict == .result && $0.exit == .status(0) } ?? false, "a result by no child")
      check(!row.cancelHasCome, "a result after a cancellation")
    case .retry(let exit, let failure):
      check(failure.retry && exit == row.lastChild?.exit, "a retry of a permanent failure")
    case .interruption: check(isStopping || row.leaseIsLost, "an interruption without a stop or a lost lease")
    case .postponement: check(!row.cancelHasCome, "a postponement after a cancellation")
    case .failure: break
    }
  }

  // MARK: The final state

  /// Checks, after a run without a stop or a crash, that all jobs have ended and released what they held.
  mutating func checkEnd() {
    for row in rows.values {
      check(row.job.state.isFinished, "a job never ended: \(row.job.state)")
      check(row.clears == (row.job.state == .cancelled ? 1 : 0), "\(row.job.state), cleared \(row.clears) times")
      check(row.forgets == (row.isLive ? 1 : 0), "\(row.job.state), forgotten \(row.forgets) times")
    }
    // Every place is free if that many jobs can begin.
    for _ in 0..<Self.limits.places {
      let id = JobID()
      let actions = lifecycle.on(.submitted(id, WaveformJob.cost(samples: 1), Client(key: "")), at: now)
      check(actions.count == 1, "a place is still taken")
    }
  }
}
