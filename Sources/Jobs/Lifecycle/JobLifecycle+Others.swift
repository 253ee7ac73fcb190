import Storage

// Events of the other nodes that share the queue: they take jobs, give them back and end them. See the table in
// JobLifecycle.swift.

extension JobLifecycle {
  mutating func taken(_ id: JobID) {
    switch jobs[id]?.state {
    case .queued: if let waiting = schedule.take(id) { leaveToOthers(id, waiting) }
    case .pausing(let waiting): leaveToOthers(id, waiting)
    case .held: leaveToOthers(id)
    default: break
    }
  }

  /// Frees the job's place.
  mutating func leaveToOthers(_ id: JobID) {
    guard let ended = schedule.end(id) else { preconditionFailure("a job that was claimed has a place") }
    leaveToOthers(id, ended)
  }

  private mutating func leaveToOthers(_ id: JobID, _ job: JobSchedule.Ended) {
    schedule.beginElsewhere(job)
    jobs[id]?.state = .elsewhere(job)
  }

  mutating func returned(_ id: JobID) {
    guard case .elsewhere(let job) = jobs[id]?.state else { return }
    schedule.endElsewhere(job)
    jobs[id]?.state = .queued
    schedule.add(id, job)
  }

  mutating func endedElsewhere(_ id: JobID) {
    switch jobs[id]?.state {
    case .queued, .pausing, .held, .elsewhere:
      schedule.remove(id)
      end(id)
    default: break
    }
  }
}
