import Dispatch
import Processing
import Storage
import Synchronization

/// What is known of a job that waits or runs, beyond its row.
package struct LiveJob: Sendable {
  /// Whether its child runs.
  package var isRunning = false
  /// How often its child was started; its row counts an attempt a little before that.
  package var attempts = 0
  /// The last progress that its child reported.
  package var progress: WorkerProgress?
  /// When the present attempt began.
  var startedAt: ContinuousClock.Instant?
  /// The recording whose waveform the job writes; nil if it writes none.
  package let recording: RecordingID?
  /// The file in its work folder.
  package var pyramidPath: String?
  /// Where the waveform goes when it is whole; its row says so a little later.
  package var finishedPyramidPath: String?

  /// 0 … 1.
  package var fraction: Double { progress?.fraction ?? 0 }

  /// What those who wait for news compare with.
  struct Mark: Sendable {
    let isRunning: Bool
    let fraction: Double
    /// Tells attempts apart: between two looks one may have failed and the next begun.
    let startedAt: ContinuousClock.Instant?

    /// Whether progress is worth a notification: the state changed, or it grew by 1 %.
    func isPassed(by job: LiveJob) -> Bool {
      job.isRunning != isRunning || job.startedAt != startedAt || job.fraction >= fraction + 0.01
    }
  }

  var mark: Mark { Mark(isRunning: isRunning, fraction: fraction, startedAt: startedAt) }

  /// What a caller saw of a job, live or not.
  package struct Look: Sendable {
    fileprivate let mark: Mark?
    /// Jobs that had become live by then: one that was not may have come and gone before the caller waits for it.
    fileprivate let arrivals: UInt64
  }

  /// Seconds left, judged by the pace so far; nil before there is one.
  package var secondsLeft: Double? {
    // A pace needs a distance: the first thousandths would promise hours.
    guard let startedAt, fraction >= 0.01 else { return nil }
    let elapsed = (ContinuousClock.now - startedAt) / .seconds(1)
    return max(elapsed / fraction - elapsed, 0)
  }
}

/// The jobs that wait or run, as handlers see them: a look costs a lock and no query.
package final class LiveJobs: Sendable {
  private struct Waiter {
    let look: LiveJob.Look
    let deadline: DispatchTime
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var jobs: [JobID: LiveJob] = [:]
    var byRecording: [RecordingID: JobID] = [:]
    var arrivals: UInt64 = 0
    var waiters: [JobID: [UInt64: Waiter]] = [:]
    var nextSweep: DispatchTime?
    var hasEnded = false
    var onRemoved: (@Sendable (JobID) -> Void)?
  }

  private let state = Mutex(State())
  private let changes = Atomic<UInt64>(0)
  private let nextKey = Atomic<UInt64>(0)
  private let timers = DispatchQueue(label: "job waits")

  /// Grows with every step of a job: what was read after the count was taken is current for as long as the count stays.
  package var changeCount: UInt64 { changes.load(ordering: .sequentiallyConsistent) }

  /// How many jobs there are.
  package var count: Int { state.withLock { $0.jobs.count } }

  /// The job, if it waits or runs.
  package subscript(_ id: JobID) -> LiveJob? { state.withLock { $0.jobs[id] } }

  /// To be taken before the row is read, and given to `waitForChange`.
  package func look(at id: JobID) -> LiveJob.Look {
    state.withLock { LiveJob.Look(mark: $0.jobs[id]?.mark, arrivals: $0.arrivals) }
  }

  /// How many callers wait for news of a job.
  package func waiterCount(of id: JobID) -> Int { state.withLock { $0.waiters[id]?.count ?? 0 } }

  /// The job that writes the waveform of a recording now.
  package func job(writing recording: RecordingID) -> LiveJob? {
    state.withLock { state in state.byRecording[recording].flatMap { state.jobs[$0] } }
  }

  /// Whether the service stops, so that nobody waits any more.
  package var waitsHaveEnded: Bool { state.withLock { $0.hasEnded } }

  /// Has every job's end told, after its row says how it ended. Set once, before the first job.
  package func whenRemoved(_ action: @escaping @Sendable (JobID) -> Void) { state.withLock { $0.onRemoved = action } }

  func insert(_ id: JobID, _ job: LiveJob) {
    let ready = state.withLock { state -> [Waiter] in
      state.jobs[id] = job
      if let recording = job.recording { state.byRecording[recording] = id }
      state.arrivals += 1
      changes.wrappingAdd(1, ordering: .sequentiallyConsistent)
      return Array((state.waiters.removeValue(forKey: id) ?? [:]).values)
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  func update(_ id: JobID, _ change: (inout LiveJob) -> Void) {
    let ready = state.withLock { state -> [Waiter] in
      guard var job = state.jobs[id] else { return [] }
      change(&job)
      state.jobs[id] = job
      changes.wrappingAdd(1, ordering: .sequentiallyConsistent)
      let due = state.waiters[id, default: [:]].filter { _, waiter in waiter.look.mark?.isPassed(by: job) ?? true }
      for key in due.keys { state.waiters[id]?[key] = nil }
      return Array(due.values)
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  /// The job has ended, and its row says how.
  func remove(_ id: JobID) {
    let (ready, action) = state.withLock { state in
      if let recording = state.jobs.removeValue(forKey: id)?.recording, state.byRecording[recording] == id {
        state.byRecording[recording] = nil
      }
      changes.wrappingAdd(1, ordering: .sequentiallyConsistent)
      return (Array((state.waiters.removeValue(forKey: id) ?? [:]).values), state.onRemoved)
    }
    for waiter in ready { waiter.continuation.resume() }
    action?(id)
  }

  /// Returns when the job's state changes, its progress grows by 0.01, `seconds` have passed, or the caller's Task is
  /// cancelled; at once where the job is not live, or when `endWaits` was called.
  package func waitForChange(of id: JobID, seconds: Double) async {
    let look = look(at: id)
    guard look.mark != nil else { return }
    await waitForChange(of: id, since: look, seconds: seconds)
  }

  /// The same, counted from what the job was when the caller looked, so that nothing in between is missed: returns at
  /// once where the job has changed or ended since. A job that was not live then is waited for until it is; where it
  /// may have been meanwhile, returns at once.
  package func waitForChange(of id: JobID, since look: LiveJob.Look, seconds: Double) async {
    let key = nextKey.wrappingAdd(1, ordering: .relaxed).newValue
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        insert(Waiter(look: look, deadline: .now() + seconds, continuation: continuation), key, id)
        // A cancellation that came before found nobody to wake.
        if Task.isCancelled { wake(key, id) }
      }
    } onCancel: {
      wake(key, id)
    }
  }

  /// The service stops: who waits is answered with what there is, and nobody waits any more.
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
    if isTaken { sweep(by: waiter.deadline) } else { waiter.continuation.resume() }
  }

  private func wake(_ key: UInt64, _ id: JobID) {
    let waiter = state.withLock { state in
      let waiter = state.waiters[id]?.removeValue(forKey: key)
      // Of a job that never becomes live nobody else would remove it.
      if state.waiters[id]?.isEmpty == true { state.waiters[id] = nil }
      return waiter
    }
    waiter?.continuation.resume()
  }

  /// Sees to it that somebody looks for late waiters then: one timer for all of them, which goes off at most ten times
  /// a second.
  private func sweep(by deadline: DispatchTime) {
    let isNeeded = state.withLock { state in
      guard state.nextSweep.map({ deadline < $0 }) ?? true else { return false }
      state.nextSweep = deadline
      return true
    }
    guard isNeeded else { return }
    timers.asyncAfter(deadline: deadline) { [self] in wakeLate(at: deadline) }
  }

  private func wakeLate(at deadline: DispatchTime) {
    let now = DispatchTime.now()
    let (late, next) = state.withLock { state -> ([Waiter], DispatchTime?) in
      // An earlier sweep was asked for since, and has asked for the next.
      guard state.nextSweep == deadline else { return ([], nil) }
      state.nextSweep = nil
      var late: [Waiter] = []
      var next: DispatchTime?
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
    if let next { sweep(by: max(next, now + 0.1)) }
  }
}
