import Storage

/// What a process does about the row of a job, or about what the feed says of it, which may be late, doubled or out of
/// date: it only ever leads to a claim, which the row decides, or to the end of a wait.
enum HeardJob {
  /// Nothing.
  case nothing
  /// Read the row, because this process doesn't have the job.
  case unknown
  /// Take this event.
  case event(JobLifecycle.Event)

  /// Decides for the process `node`. `isKnown` is whether it has the job, waiting or running here or elsewhere.
  init(_ job: Job, isKnown: Bool, on node: String) {
    switch job.state {
    case _ where !isKnown: self = job.isQueued(on: node) ? .unknown : .nothing
    case .queued: self = .event(.returned(job.id))
    case .running: self = job.node == node ? .nothing : .event(.taken(job.id))
    case .cancelled: self = .event(.cancelled(job))
    case .succeeded, .failed: self = .event(.endedElsewhere(job.id))
    }
  }
}

extension Job {
  /// Whether a process that doesn't have the job queues it. If it ran the job, it has given it up without being able to
  /// write that. The lease will end, which doesn't count as a failure; a claim by the same process would.
  func isQueued(on node: String) -> Bool { !state.isFinished && !(state == .running && self.node == node) }
}

extension Job {
  /// How long the job is still postponed at `now`, by a clock that may be ahead of the catalog's by a second; nil if it
  /// isn't.
  fileprivate func secondsEarly(at now: Timestamp) -> Double? {
    guard let notBefore, notBefore + 1 > now else { return nil }
    return Double(notBefore.milliseconds - now.milliseconds) / 1000
  }
}

extension JobLifecycle.Refusal {
  /// Creates the reason why a job couldn't be claimed at `now` from its row, which is nil if the job is gone.
  init(_ job: Job?, at now: Timestamp) {
    switch job?.state {
    case .cancelled: self = job.map { .cancelled($0) } ?? .over
    case .queued: self = job?.secondsEarly(at: now).map { .tooEarly(seconds: $0) } ?? .clientIsFull
    case .running: self = .runsElsewhere
    case .succeeded, .failed, nil: self = .over
    }
  }
}
