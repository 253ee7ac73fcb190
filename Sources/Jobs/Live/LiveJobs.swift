import Dispatch
import Storage
import Synchronization
import Terms
import Workers

/// The state of a job that waits or runs, as far as it isn't in the job's row.
package struct LiveJob: Sendable {
  /// Whether its child is running.
  package var isRunning = false
  /// The number of attempts, counted when a child is started. The row counts an attempt slightly earlier.
  package var attempts = 0
  /// The last progress reported by its child.
  package var progress: WorkerProgress? {
    didSet { progressAt = clock.now }
  }
  /// When that was reported.
  private(set) var progressAt: Clock.Instant?
  /// The start of the current attempt.
  var startedAt: Clock.Instant?
  fileprivate(set) var clock = Clock.system
  /// Whose job it is.
  package let tenant: Tenant
  /// The recording whose waveform the job writes; nil if it writes none.
  package let recording: RecordingID?
  /// The latest attempt, which writes the waveform if the job writes one.
  package var writer: AttemptToken?
  /// Where the node that runs that attempt serves the waveform to others, as `HOST:PORT`; nil if it doesn't, or if this
  /// process runs the attempt.
  package var address: String?
  /// The state that was last passed to `whenChanged`.
  var announced: Mark?

  /// The completed part of the work, 0 to 1.
  package var fraction: Double { progress?.fraction ?? 0 }

  /// The state that waiting callers compare a job with.
  struct Mark: Sendable {
    let isRunning: Bool
    let fraction: Double
    /// Distinguishes attempts, because one may have failed and the next begun in between.
    let startedAt: Clock.Instant?

    /// Whether progress is worth a notification: the state changed, or it grew by 1 %.
    func isPassed(by job: LiveJob) -> Bool {
      job.isRunning != isRunning || job.startedAt != startedAt || job.fraction >= fraction + 0.01
    }
  }

  var mark: Mark { Mark(isRunning: isRunning, fraction: fraction, startedAt: startedAt) }

  /// The state of a job, live or not, at the time of a call to `look`.
  package struct Look: Sendable {
    fileprivate let mark: Mark?
    /// The number of jobs inserted by then. If the job wasn't live and the number has grown since, the job may have
    /// come and gone.
    fileprivate let arrivals: UInt64
  }

  /// The estimated number of seconds left, assuming the pace so far; nil before 1 % is done.
  package var secondsLeft: Double? {
    // The first thousandths of the work would give estimates of hours.
    guard let startedAt, fraction >= 0.01 else { return nil }
    // From the time of the report, because other nodes' reports come once a second.
    let elapsed = ((progressAt ?? clock.now) - startedAt) / .seconds(1)
    return max(elapsed / fraction - clock.seconds(since: startedAt), 0)
  }
}

/// The jobs that wait or run. Reading them takes a lock but no query.
package final class LiveJobs: Sendable {
  private struct Waiter {
    let look: LiveJob.Look
    let deadline: Clock.Instant
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var jobs: [JobID: LiveJob] = [:]
    var byRecording: [RecordingID: JobID] = [:]
    var arrivals: UInt64 = 0
    var waiters: [JobID: [UInt64: Waiter]] = [:]
    var hasEnded = false
    var onRemoved: (@Sendable (JobID, LiveJob) -> Void)?
    var onChanged: (@Sendable (Owned<Job>) -> Void)?
  }

  private let state = Mutex(State())
  private let changes = Atomic<UInt64>(0)
  private let nextKey = Atomic<UInt64>(0)
  private let clock: Clock
  private let timer: DeadlineTimer

  /// Creates a table without jobs.
  package init(_ clock: Clock = .system) {
    (self.clock, timer) = (clock, DeadlineTimer(label: "job waits", clock))
  }

  /// A count that increases with every change of a job. Anything read after the count stays current until the count
  /// changes.
  package var changeCount: UInt64 { changes.load(ordering: .sequentiallyConsistent) }

  /// The number of jobs that wait or run.
  package var count: Int { state.withLock { $0.jobs.count } }

  /// The job, or nil if it neither waits nor runs.
  package subscript(_ id: JobID) -> LiveJob? { state.withLock { $0.jobs[id] } }

  /// Returns the state of a job for `waitForChange`. Call it before reading the job's row.
  package func look(at id: JobID) -> LiveJob.Look {
    state.withLock { LiveJob.Look(mark: $0.jobs[id]?.mark, arrivals: $0.arrivals) }
  }

  /// Returns the number of callers that wait for a change of a job.
  package func waiterCount(of id: JobID) -> Int { state.withLock { $0.waiters[id]?.count ?? 0 } }

  /// Returns the job that is writing the waveform of a recording, or nil.
  package func job(writing recording: RecordingID) -> LiveJob? {
    state.withLock { state in state.byRecording[recording].flatMap { state.jobs[$0] } }
  }

  /// Returns the jobs that are writing waveforms of these recordings.
  package func jobs(writing recordings: [RecordingID]) -> [RecordingID: LiveJob] {
    state.withLock { state in
      var found: [RecordingID: LiveJob] = [:]
      guard !state.byRecording.isEmpty else { return found }
      for recording in recordings { found[recording] = state.byRecording[recording].flatMap { state.jobs[$0] } }
      return found
    }
  }

  /// Whether `endWaits` was called, after which every wait returns at once.
  package var waitsHaveEnded: Bool { state.withLock { $0.hasEnded } }

  /// Sets the action to call after each job is removed, when its row already says how it ended. Call this once, before
  /// the first job.
  package func whenRemoved(_ action: @escaping @Sendable (JobID, LiveJob) -> Void) {
    state.withLock { $0.onRemoved = action }
  }

  /// Sets the action to call when the state of a job changes or its progress has grown by 0.01. Call this once, before
  /// the first job.
  package func whenChanged(_ action: @escaping @Sendable (Owned<Job>) -> Void) {
    state.withLock { $0.onChanged = action }
  }

  func insert(_ id: JobID, _ job: LiveJob) {
    let ready = state.withLock { state -> [Waiter] in
      state.jobs[id] = job
      state.jobs[id]?.clock = clock
      if let recording = job.recording { state.byRecording[recording] = id }
      state.arrivals += 1
      changes.wrappingAdd(1, ordering: .sequentiallyConsistent)
      return Array((state.waiters.removeValue(forKey: id) ?? [:]).values)
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  func update(_ id: JobID, _ change: (inout LiveJob) -> Void) {
    let (ready, announce) = state.withLock { state -> ([Waiter], (() -> Void)?) in
      guard var job = state.jobs[id] else { return ([], nil) }
      change(&job)
      let isNews = job.announced?.isPassed(by: job) ?? true
      if isNews { job.announced = job.mark }
      state.jobs[id] = job
      let (owned, action) = (Owned(id, of: job.tenant), state.onChanged)
      changes.wrappingAdd(1, ordering: .sequentiallyConsistent)
      let due = state.waiters[id, default: [:]].filter { _, waiter in waiter.look.mark?.isPassed(by: job) ?? true }
      for key in due.keys { state.waiters[id]?[key] = nil }
      return (Array(due.values), isNews ? { action?(owned) } : nil)
    }
    for waiter in ready { waiter.continuation.resume() }
    announce?()
  }

  /// Removes a job that has ended. Its row must already say how it ended.
  func remove(_ id: JobID) {
    let (job, ready, action, announce) = state.withLock { state in
      let job = state.jobs.removeValue(forKey: id)
      if let recording = job?.recording, state.byRecording[recording] == id { state.byRecording[recording] = nil }
      changes.wrappingAdd(1, ordering: .sequentiallyConsistent)
      return (job, Array((state.waiters.removeValue(forKey: id) ?? [:]).values), state.onRemoved, state.onChanged)
    }
    for waiter in ready { waiter.continuation.resume() }
    guard let job else { return }
    action?(id, job)
    announce?(Owned(id, of: job.tenant))
  }

  /// Returns when the job's state changes, its progress grows by 0.01, `seconds` have passed, `endWaits` is called, or
  /// the caller's Task is canceled. Returns at once if the job isn't live.
  package func waitForChange(of id: JobID, seconds: Double) async {
    let look = look(at: id)
    guard look.mark != nil else { return }
    await waitForChange(of: id, since: look, seconds: seconds)
  }

  /// Waits like the other, but from the state in `look` on, so that no change is missed: returns at once if the
  /// job has changed or ended since. If the job wasn't live then, waits until it is, or returns at once if it may have
  /// been live in between.
  package func waitForChange(of id: JobID, since look: LiveJob.Look, seconds: Double) async {
    let key = nextKey.wrappingAdd(1, ordering: .relaxed).newValue
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        insert(Waiter(look: look, deadline: clock.instant(after: seconds), continuation: continuation), key, id)
        // If the Task was canceled before this point, `onCancel` found no waiter to wake.
        if Task.isCancelled { wake(key, id) }
      }
    } onCancel: {
      wake(key, id)
    }
  }

  /// The numbers of jobs that wait and that run.
  package var counts: (waiting: Int, running: Int) {
    state.withLock { state in
      let running = state.jobs.values.count { $0.isRunning }
      return (state.jobs.count - running, running)
    }
  }

  /// Ends all waits, now and in future, because the service is stopping. Callers answer with the current state.
  package func endWaits() {
    let waiting = state.withLock { state in
      defer { (state.waiters, state.hasEnded) = ([:], true) }
      return state.waiters.values.flatMap(\.values)
    }
    for waiter in waiting { waiter.continuation.resume() }
  }

  private func insert(_ waiter: Waiter, _ key: UInt64, _ id: JobID) {
    let isTaken = state.withLock { state -> Bool in
      guard !state.hasEnded else { return false }
      switch (waiter.look.mark, state.jobs[id]) {
      case (nil, nil): guard waiter.look.arrivals == state.arrivals else { return false }
      case (let mark?, let job?): guard !mark.isPassed(by: job) else { return false }
      default: return false
      }
      state.waiters[id, default: [:]][key] = waiter
      return true
    }
    guard isTaken else { return waiter.continuation.resume() }
    timer.schedule(by: waiter.deadline) { [self] in wakeLate($0) }
  }

  private func wake(_ key: UInt64, _ id: JobID) {
    let waiter = state.withLock { state in
      let waiter = state.waiters[id]?.removeValue(forKey: key)
      // If the job never becomes live, nothing else removes the empty entry.
      if state.waiters[id]?.isEmpty == true { state.waiters[id] = nil }
      return waiter
    }
    waiter?.continuation.resume()
  }

  /// Wakes the callers that have waited long enough. Returns the earliest deadline of the others.
  private func wakeLate(_ now: Clock.Instant) -> Clock.Instant? {
    let (late, next) = state.withLock { state -> ([Waiter], Clock.Instant?) in
      var late: [Waiter] = []
      var next: Clock.Instant?
      for (id, waiters) in state.waiters {
        for (key, waiter) in waiters {
          if waiter.deadline <= now {
            late.append(waiter)
            state.waiters[id]?[key] = nil
          } else {
            next = min(next ?? waiter.deadline, waiter.deadline)
          }
        }
        if state.waiters[id]?.isEmpty == true { state.waiters[id] = nil }
      }
      return (late, next)
    }
    for waiter in late { waiter.continuation.resume() }
    return next
  }
}
