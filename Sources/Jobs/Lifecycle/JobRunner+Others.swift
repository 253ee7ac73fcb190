import Dispatch
import Storage
import Synchronization
import Workers

// Used only if several processes share the catalog. Each keeps the whole queue: it hears of the others' jobs from the
// catalog's feed, or else finds them in the table, which it reads again every few seconds. So all have the same order,
// and a job that one can't claim runs elsewhere, until the feed or the table says otherwise.
// A message that was lost costs one interval of the table's reading. `HeardJob` decides what follows from a message or
// a row; NodesSimulation runs it with nodes that fail and messages that are lost.

extension JobRunner {
  /// Takes in what another process has done.
  package func heard(_ heard: HeardFromOthers) {
    switch heard {
    case .changes(let changes):
      guard !changes.jobs.isEmpty else { return }
      clock.async(on: queue) { [self] in
        for change in changes.jobs {
          if let job = change.job { follow(job) } else { look(at: change.id) }
        }
      }
    case .progress(let progress): queue.async { [self] in follow(progress) }
    case .anything: queue.async { [self] in reread() }
    }
  }

  /// Reads the queue from the catalog again, after ending the leases of processes that are gone.
  func reread() {
    dispatchPrecondition(condition: .onQueue(queue))
    guard !state.value.isStopping else { return }
    start { [self] in
      do {
        lostAttempts.wrappingAdd(try catalog.endLostLeases(), ordering: .relaxed)
        let unfinished = try catalog.unfinishedJobs()
        for job in unfinished { admit(job, source: isKnown(job.id) ? nil : try catalog.recording(job.recording)) }
        let ids = Set(unfinished.map(\.id))
        for id in known where !ids.contains(id) { queue.async { [self] in look(at: id) } }
      } catch { log.failure("the queue of jobs could not be read", ["error": "\(error)"]) }
    }
  }

  /// Queues a job unless it is known, and notes who runs it.
  func admit(_ job: Job, source: Recording?) {
    if !isKnown(job.id), job.isQueued(on: catalog.holder.node) { submit(job, source: source) }
    clock.async(on: queue) { [self] in follow(job) }
  }

  /// Reads a job that something was heard about.
  private func look(at id: JobID) {
    start { [self] in
      do {
        guard let job = try catalog.job(id) else { return queue.async { [self] in take(.endedElsewhere(id)) } }
        if job.state.isFinished || isKnown(id) { return queue.async { [self] in follow(job) } }
        admit(job, source: try catalog.recording(job.recording))
      } catch { log.failure("a job could not be read", ["job": id.text, "error": "\(error)"]) }
    }
  }

  /// Takes in the row of a job, or what the feed says of it.
  private func follow(_ job: Job) {
    dispatchPrecondition(condition: .onQueue(queue))
    switch HeardJob(job, isKnown: isKnown(job.id), on: catalog.holder.node) {
    case .nothing: break
    case .unknown: look(at: job.id)
    case .event(let event):
      take(event)
      show(event, of: job)
    }
  }

  /// Shows what another node does with a job.
  private func show(_ event: JobLifecycle.Event, of job: Job) {
    guard state.value.attempts[job.id] == nil else { return }
    switch event {
    case .returned: if live[job.id]?.isRunning == true { live.update(job.id) { $0.isRunning = false } }
    case .taken: if let token = job.token { show(token, of: job) }
    default: break
    }
  }

  /// Shows an attempt of another node, unless that or a later one is shown already.
  private func show(_ token: AttemptToken, of job: Job) {
    guard let shown = live[job.id],
      token.attempt > shown.attempts || token.attempt == shown.attempts && !shown.isRunning
    else { return }
    live.update(job.id) { live in
      live.isRunning = true
      live.attempts = token.attempt
      live.startedAt = clock.now
      live.progress = nil
      live.writer = token
      live.address = nil
    }
  }

  private func follow(_ progress: AttemptProgress) {
    dispatchPrecondition(condition: .onQueue(queue))
    let token = progress.token
    guard state.value.attempts[token.job] == nil, let live = live[token.job], live.isRunning, live.writer == token,
      case .progress(let known)? = WorkerReport(line: Array(progress.report.utf8)[...])
    else { return }
    let address = proven(progress)
    self.live.update(token.job) { ($0.progress, $0.address) = (known, address ?? $0.address) }
  }

  /// The address in a message, if a node of this cluster has named it. If not, the log says so, at most once a minute.
  private func proven(_ progress: AttemptProgress) -> String? {
    guard let address = progress.address, let known = addressProof.withLock({ $0 }) else { return nil }
    if let proof = progress.proof, known.isProof(proof, of: address, for: progress.token) { return address }
    let reason =
      progress.proof == nil
      ? "it isn't proven"
      : "it is proven with another secret: the nodes have different files for --cluster-secret-file"
    addressLog.failure(
      "the address of a node isn't believed, so waveforms that it builds don't grow here",
      ["job": progress.token.job.text, "address": address, "reason": reason])
    return nil
  }

  /// Tells the others how far an attempt has come, at most once a second.
  func tellOthers(_ report: WorkerReport, _ id: JobID) {
    dispatchPrecondition(condition: .onQueue(queue))
    guard catalog.isShared, let attempt = state.value.attempts[id], attempt.toldAt.map({ $0 + 1 <= now }) ?? true else {
      return
    }
    state.value.attempts[id]?.toldAt = now
    let (token, address) = (attempt.claimed.token, address.withLock { $0 })
    let proof = address.flatMap { address in addressProof.withLock { $0 }?.proof(of: address, for: token) }
    let progress = AttemptProgress(
      token, report: String(decoding: report.line(), as: UTF8.self), address: address, proof: proof)
    // If this fails, the next report follows in a second.
    start { [catalog] in try? catalog.tellOthers(progress) }
  }
}
