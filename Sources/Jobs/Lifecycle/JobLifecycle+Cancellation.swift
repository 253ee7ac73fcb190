import Storage

// Whatever a job is doing when it is canceled, its files are removed once, after its child and its writer have ended.
// See the table in JobLifecycle.swift.

extension JobLifecycle {
  mutating func cancel(_ job: Job) {
    switch jobs[job.id]?.state {
    case nil:
      // The row was read before this event arrived, or the job hasn't been submitted yet.
      if clearedEarly.remove(job.id) == nil { clearUnannounced(job) }
    case .queued, .pausing, .held:
      schedule.remove(job.id)
      actions.append(.forget(job.id))
      clear(job)
    case .elsewhere:
      // The node that runs it removes its files, because only that node knows when its child has ended.
      actions.append(.forget(job.id))
      leave(job.id)
    case .claimed, .preparing, .ending:
      jobs[job.id]?.state = .cancelled(job)
      actions.append(.forget(job.id))
    case .running, .overrun, .stopping:
      jobs[job.id]?.state = .cancelled(job)
      actions += [.kill(job.id), .forget(job.id)]
    case .clearing: clearedEarly.remove(job.id)
    case .cancelled: break
    }
  }

  /// Clears a job if it was canceled, now that its child or writer has ended and can't write any more. Returns whether
  /// it was canceled.
  mutating func clearIfCancelled(_ id: JobID) -> Bool {
    guard case .cancelled(let job) = jobs[id]?.state else { return false }
    clear(job)
    return true
  }

  /// Clears a job before its cancellation or its submission has arrived.
  mutating func clearUnannounced(_ job: Job) {
    clearedEarly.insert(job.id)
    if jobs[job.id] != nil { actions.append(.forget(job.id)) }
    clear(job)
  }

  private mutating func clear(_ job: Job) {
    jobs[job.id, default: Entry(state: .clearing)].state = .clearing
    actions.append(.clear(job))
  }
}
