import Dispatch
import Processing
import Storage
import Synchronization

/// What is known of a job that waits or runs, beyond its row.
struct LiveJob: Sendable {
  var isRunning = false
  var progress: WorkerProgress?
  /// When the present attempt began.
  var startedAt: ContinuousClock.Instant?
  /// The recording whose waveform the job writes, and where.
  let recording: RecordingID
  var pyramidPath: String?

  var fraction: Double { progress?.fraction ?? 0 }

  /// Seconds left, judged by the pace so far; nil before there is one.
  var secondsLeft: Double? {
    // A pace needs a distance: the first thousandths would promise hours.
    guard let startedAt, fraction >= 0.01 else { return nil }
    let elapsed = (ContinuousClock.now - startedAt) / .seconds(1)
    return max(elapsed / fraction - elapsed, 0)
  }
}

/// The jobs that wait or run, as handlers see them: a look costs a lock and no query.
final class LiveJobs: Sendable {
  private struct Waiter {
    let fraction: Double
    let isRunning: Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var jobs: [JobID: LiveJob] = [:]
    var byRecording: [RecordingID: JobID] = [:]
    var waiters: [JobID: [UInt64: Waiter]] = [:]
    var nextWaiter: UInt64 = 0
  }

  private let state = Mutex(State())

  var count: Int { state.withLock { $0.jobs.count } }

  subscript(_ id: JobID) -> LiveJob? { state.withLock { $0.jobs[id] } }

  /// How many callers wait for news of a job.
  func waiterCount(of id: JobID) -> Int { state.withLock { $0.waiters[id]?.count ?? 0 } }

  /// The job that writes the waveform of a recording now.
  func job(writing recording: RecordingID) -> LiveJob? {
    state.withLock { state in state.byRecording[recording].flatMap { state.jobs[$0] } }
  }

  func insert(_ id: JobID, _ job: LiveJob) {
    state.withLock { state in
      state.jobs[id] = job
      state.byRecording[job.recording] = id
    }
  }

  func update(_ id: JobID, _ change: (inout LiveJob) -> Void) {
    let ready = state.withLock { state -> [Waiter] in
      guard var job = state.jobs[id] else { return [] }
      change(&job)
      state.jobs[id] = job
      let due = state.waiters[id, default: [:]].filter { _, waiter in
        job.isRunning != waiter.isRunning || job.fraction >= waiter.fraction + 0.01
      }
      for key in due.keys { state.waiters[id]?[key] = nil }
      return Array(due.values)
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  /// The job has ended, and its row says how.
  func remove(_ id: JobID) {
    let ready = state.withLock { state -> [Waiter] in
      if let job = state.jobs.removeValue(forKey: id), state.byRecording[job.recording] == id {
        state.byRecording[job.recording] = nil
      }
      return Array((state.waiters.removeValue(forKey: id) ?? [:]).values)
    }
    for waiter in ready { waiter.continuation.resume() }
  }

  /// Returns when the job's state changes, its progress grows by 0.01, or `seconds` have passed; at once where the job
  /// is not live.
  func waitForChange(of id: JobID, seconds: Double, on queue: DispatchQueue) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let key = state.withLock { state -> UInt64? in
        guard let job = state.jobs[id] else { return nil }
        state.nextWaiter += 1
        state.waiters[id, default: [:]][state.nextWaiter] = Waiter(
          fraction: job.fraction, isRunning: job.isRunning, continuation: continuation)
        return state.nextWaiter
      }
      guard let key else { return continuation.resume() }
      queue.asyncAfter(deadline: .now() + seconds) { [self] in
        let late = state.withLock { $0.waiters[id]?.removeValue(forKey: key) }
        late?.continuation.resume()
      }
    }
  }
}
