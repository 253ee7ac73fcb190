// A stop kills the children and waits until their attempts are recorded. See the table in JobLifecycle.swift.

extension JobLifecycle {
  /// Whether a stop has to wait for any job.
  var isWorking: Bool {
    jobs.values.contains { entry in
      switch entry.state {
      case .queued, .pausing, .held, .elsewhere: false
      default: true
      }
    }
  }

  mutating func stop() {
    (isStopping, stopIsAwaited) = (true, true)
    for (id, entry) in jobs {
      switch entry.state {
      case .running, .overrun:
        jobs[id]?.state = .stopping
        actions.append(.kill(id))
      case .held: leave(id)
      default: break
      }
    }
  }
}
