// The life of a job from its submission to its end, attempt by attempt, as a state machine without a clock, a queue, a
// disk or a child process. `JobRunner` performs the actions and returns their outcomes as events.
//
//   state       meaning; resources held                    event                      next state   actions
//   ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
//   (none)                                                 submitted                  queued
//   cancelled, clearing                                    submitted, out of date     (as before)  forget
//   queued      waits for its turn                         (its turn)                 claimed      claim
//   claimed     its row is being set to running, with      claimed                    preparing    prepare
//               one more attempt; a place                  claimed, failed or lost    ending       record failure
//                                                          too often
//                                                          refused, cancelled         clearing     forget, clear
//                                                          refused, over              (none)       forget
//                                                          refused, runs elsewhere    elsewhere
//                                                          refused, client is full    pausing      pause
//                                                          or too early
//   preparing   its files are checked and its folder is    prepared                   running      start
//               created; a place                           prepared, leaseLost before ending       record interruption
//   (both)                                                 notBegun, with a failure   ending       record failure
//                                                          notBegun: claimed          held         hold
//                                                          notBegun: preparing        pausing      pause
//                                                          storeFailed: preparing     ending       record postponement
//   running     its child is working; a place, a child     exited 0 after a result    ending       record result
//                                                          exited, fault of the disk, ending       record postponement
//                                                          beside other nodes
//                                                          exited, may be retried     ending       record retry
//                                                          exited                     ending       record failure
//                                                          tick or progress, over a   overrun      kill
//                                                          limit
//   overrun     its child is being killed for exceeding    (as running)
//               a limit; a place, a child
//                                                          leaseLost                  stopping     kill
//   stopping    its child is being killed because the      exited                     ending       record interruption
//               service stops or its lease is ending;
//               a place, a child
//   ending      the attempt's end is being recorded;       recorded over, lost        (none)       forget
//               a place                                    recorded again, postponed  pausing      pause
//                                                          recorded unwanted          clearing     forget, clear
//                                                          recorded unwritten         held         hold
//   held        the catalog takes neither its claim nor    holdEnded                  claimed      claim
//               its failure; a place, because it would     holdEnded, after a         ending       record failure
//               take no other job's                        failure
//   pausing     waits until its next attempt               pauseEnded                 queued
//   cancelled   its row is canceled; a child or a          (the event that ends       clearing     clear
//               writer is still working; a place           the work)
//   clearing    its files are being removed;               cleared                    (none)
//               perhaps a place
//   elsewhere   another node runs it                       returned                   queued
//                                                          cancelled                  (none)       forget
//
//   cancel      queued, pausing, held → clearing: forget, clear                claimed, preparing, ending → cancelled:
//               running, overrun, stopping → cancelled: kill, forget           forget
//               (none) → clearing: clear. The job isn't submitted yet, or its row was read before; the later of the
//               two events changes nothing (`clearedEarly`).
//   taken           queued, pausing, held → elsewhere
//   endedElsewhere  queued, pausing, held, elsewhere → (none): forget
//               In other states these two change nothing: a write of this node's attempt will be refused.
//   stop        running, overrun → stopping: kill; held → (none). No job begins any more: claimed and preparing go to
//               ending and record an interruption, and jobs that would pause end instead. Jobs that the stop leaves
//               unfinished are not forgotten: they stay live as long as the service answers requests.
//   drain       No job begins any more; those that have begun go on.
//   recorded over   also cancels the jobs on the recording that the job was producing.
//
// Invariants, whatever the order of events (JobLifecycleTests):
//
//   - A job has at most one child.
//   - After a cancellation no result is recorded, no child is started, and the job's files are removed exactly once,
//     after its child and its writer have ended.
//   - Every place in the schedule is freed, and every job that ends is forgotten once, which releases its room.
//   - A stop completes as soon as the work under way has ended.
//   - A child counts as a success only if it reported a result and then exited with 0.
//   - A job has at most `maximumAttempts` attempts, not counting those that a stop or a crash of the service
//     interrupted, of which it has at most `maximumLosses`; the pause after each is twice as long as the one before.
//     Those that the store of media has failed count for neither, nor do, beside other nodes, those that the disk of
//     their node has failed; their number has a limit of its own (Job+Lease).

import Storage
import Terms
import Workers

/// Decides what happens to jobs, given the events so far.
package struct JobLifecycle {
  struct Child {
    let fence: WorkerFence
    let startedAt: Double
    /// The time of its last progress.
    var heardAt: Double
    var verdict: Verdict?
  }

  enum State {
    case queued, claimed, preparing
    case running(Child)
    case overrun(Child, Overrun)
    case stopping, ending
    case held(WorkerFailure?)
    case pausing(JobSchedule.Ended)
    case cancelled(Job)
    case clearing
    case elsewhere(JobSchedule.Ended)
  }

  struct Entry {
    var state: State
    /// Attempts so far, including the current one.
    var attempts = 0
    /// Earlier attempts that failed without being interrupted.
    var failures = 0
    /// The last attempt, if it has failed and the row may not say so.
    var failed: Int?
    /// Whether the current attempt has lost its lease, or can't renew it in time.
    var leaseIsLost = false

    mutating func noteFailure() { failed = attempts }
  }

  private let limits: Limits
  private let hasOtherNodes: Bool
  var schedule: JobSchedule
  var jobs: [JobID: Entry] = [:]
  /// Jobs that were cleared before an expected event arrived: the cancellation, if the row already showed it, or the
  /// submission, if the cancellation arrived first. The late event changes nothing.
  var clearedEarly: Set<JobID> = []
  var isStopping = false
  private var isDraining = false
  private var drainIsAwaited = false
  var stopIsAwaited = false
  private var isWatching = false
  var actions: [Action] = []

  /// `hasOtherNodes`: whether there are others with a disk of their own, on which a job may succeed that this node's
  /// disk fails.
  init(
    _ limits: Limits, hasOtherNodes: Bool = false, runningLimit: @escaping @Sendable (Client) -> Int? = { _ in nil }
  ) {
    (self.limits, self.hasOtherNodes) = (limits, hasOtherNodes)
    schedule = JobSchedule(places: limits.places, runningLimit: runningLimit)
  }

  /// The failure of a job that has used up its attempts.
  static let gaveUp = WorkerFailure(
    code: "worker_failed", detail: "The work on this recording failed several times; the file may be damaged.",
    retry: false)

  /// The failure of a job during which the service ended too often.
  static let wasLostTooOften = WorkerFailure(
    code: "worker_failed",
    detail: "The service was stopped or crashed \(maximumLosses) times during this work. Request the work again.",
    retry: false)

  /// The maximum number of attempts that are lost with their node or given back because it stops. So work that brings
  /// down every node ends.
  static let maximumLosses = 10

  /// Handles an event and returns the actions to perform, in order. `now` is in seconds since any fixed moment and
  /// never decreases.
  ///
  /// Ignores events about jobs that have ended meanwhile.
  mutating func on(_ event: Event, at now: Double) -> [Action] {
    switch event {
    case .submitted(let id, let work, let client): submit(id, work, client)
    case .joined(let id, let client): join(id, client)
    case .claimed(let id, let attempts, let failures, let losses): claimed(id, attempts, failures, losses)
    case .refused(let id, let refusal): refused(id, refusal)
    case .taken(let id): taken(id)
    case .returned(let id): returned(id)
    case .endedElsewhere(let id): endedElsewhere(id)
    case .notBegun(let id, let failure): notBegun(id, failure)
    case .storeFailed(let id, let failure): storeFailed(id, failure)
    case .prepared(let id, let fence): prepared(id, fence, now)
    case .progressed(let id, let diskIsFull): progressed(id, diskIsFull, now)
    case .reported(let id, let verdict): reported(id, verdict)
    case .exited(let id, let exit): exited(id, exit)
    case .leaseLost(let id): loseLease(id)
    case .recorded(let id, let recorded): self.recorded(id, recorded)
    case .holdEnded(let id): holdEnded(id)
    case .pauseEnded(let id): pauseEnded(id)
    case .cancelled(let job): cancel(job)
    case .cleared(let id):
      if case .clearing = jobs[id]?.state { leave(id) }
    case .tick: tick(now)
    case .drain: (isDraining, drainIsAwaited) = (true, true)
    case .stop: stop()
    }
    fill()
    if drainIsAwaited, !isWorking {
      drainIsAwaited = false
      actions.append(.drained)
    }
    if stopIsAwaited, !isWorking {
      stopIsAwaited = false
      actions.append(.stopped)
    }
    defer { actions = [] }
    return actions
  }

  /// Whether a job that is submitted now begins at once.
  var hasIdlePlace: Bool { !isStopping && !isDraining && !schedule.hasWaiting && schedule.freePlaces > 0 }

  // MARK: Beginning

  private mutating func submit(_ id: JobID, _ work: JobSchedule.Work, _ client: Client) {
    if clearedEarly.remove(id) != nil { return actions.append(.forget(id)) }
    switch jobs[id]?.state {
    case nil: break
    // The row was read before the job was canceled.
    case .cancelled, .clearing: return actions.append(.forget(id))
    default: preconditionFailure("a job is submitted twice")
    }
    jobs[id] = Entry(state: .queued)
    schedule.add(id, work, for: client)
  }

  private mutating func join(_ id: JobID, _ client: Client) {
    guard case .pausing(var ended) = jobs[id]?.state else { return schedule.join(id, for: client) }
    ended.join(client)
    jobs[id]?.state = .pausing(ended)
  }

  private mutating func fill() {
    while !isStopping, !isDraining, let id = schedule.begin() { claim(id) }
  }

  private mutating func claim(_ id: JobID) {
    jobs[id]?.state = .claimed
    actions.append(.claim(id, failed: jobs[id]?.failed))
  }

  private mutating func claimed(_ id: JobID, _ attempts: Int, _ failures: Int, _ losses: Int) {
    if clearIfCancelled(id) { return }
    guard case .claimed = jobs[id]?.state else { return }
    jobs[id]?.attempts = attempts
    jobs[id]?.failures = failures
    jobs[id]?.failed = nil
    jobs[id]?.leaseIsLost = false
    if isStopping {
      record(id, .interruption)
    } else if failures >= limits.maximumAttempts {
      record(id, .failure(Self.gaveUp))
    } else if losses >= Self.maximumLosses {
      record(id, .failure(Self.wasLostTooOften))
    } else {
      jobs[id]?.state = .preparing
      actions.append(.prepare(id))
    }
  }

  private mutating func refused(_ id: JobID, _ refusal: Refusal) {
    if clearIfCancelled(id) { return }
    guard case .claimed = jobs[id]?.state else { return }
    switch refusal {
    case .over: end(id)
    case .cancelled(let job): clearUnannounced(job)
    case .runsElsewhere: leaveToOthers(id)
    case .clientIsFull: pause(id)
    // Not at once, in case the clocks differ.
    case .tooEarly(let seconds): pause(id, seconds: max(seconds, limits.retryPauseSeconds * 4))
    }
  }

  private mutating func notBegun(_ id: JobID, _ failure: WorkerFailure?) {
    if clearIfCancelled(id) { return }
    switch (jobs[id]?.state, failure) {
    case (.claimed, let failure?), (.preparing, let failure?): record(id, .failure(failure))
    case (.claimed, nil): hold(id, nil)
    case (.preparing, nil):
      if jobs[id]?.leaseIsLost == true { return record(id, .interruption) }
      jobs[id]?.noteFailure()
      pause(id)
    default: break
    }
  }

  private mutating func storeFailed(_ id: JobID, _ failure: WorkerFailure) {
    if clearIfCancelled(id) { return }
    guard case .preparing = jobs[id]?.state else { return }
    record(id, isStopping || jobs[id]?.leaseIsLost == true ? .interruption : .postponement(failure))
  }

  private mutating func prepared(_ id: JobID, _ fence: WorkerFence, _ now: Double) {
    if clearIfCancelled(id) { return }
    guard case .preparing = jobs[id]?.state else { return }
    if isStopping || jobs[id]?.leaseIsLost == true { return record(id, .interruption) }
    jobs[id]?.state = .running(Child(fence: fence, startedAt: now, heardAt: now))
    actions.append(.start(id, idlePlaces: schedule.hasWaiting ? 0 : max(schedule.freePlaces, 0)))
    watch()
  }

  // MARK: The child

  private mutating func progressed(_ id: JobID, _ diskIsFull: Bool, _ now: Double) {
    guard case .running(var child) = jobs[id]?.state else { return }
    child.heardAt = now
    jobs[id]?.state = .running(child)
    if diskIsFull { kill(id, child, .diskFull) }
  }

  private mutating func reported(_ id: JobID, _ verdict: Verdict?) {
    switch jobs[id]?.state {
    case .running(var child):
      child.verdict = verdict
      jobs[id]?.state = .running(child)
    case .overrun(var child, let overrun):
      child.verdict = verdict
      jobs[id]?.state = .overrun(child, overrun)
    default: break
    }
  }

  private mutating func tick(_ now: Double) {
    isWatching = false
    for (id, entry) in jobs {
      guard case .running(let child) = entry.state else { continue }
      let allowed = limits.secondsPerProcessorSecond * Double(child.fence.processorSeconds)
      if now - child.heardAt > limits.stallSeconds {
        kill(id, child, .stalled(seconds: limits.stallSeconds))
      } else if now - child.startedAt > allowed {
        kill(id, child, .tooLong(seconds: allowed))
      } else {
        watch()
      }
    }
  }

  private mutating func watch() {
    guard !isWatching else { return }
    isWatching = true
    actions.append(.watch(seconds: limits.stallSeconds / 8))
  }

  private mutating func kill(_ id: JobID, _ child: Child, _ overrun: Overrun) {
    jobs[id]?.state = .overrun(child, overrun)
    actions.append(.kill(id))
  }

  private mutating func exited(_ id: JobID, _ exit: WorkerExit) {
    if clearIfCancelled(id) { return }
    switch jobs[id]?.state {
    case .running(let child): ended(id, child, exit, nil)
    case .overrun(let child, let overrun): ended(id, child, exit, overrun)
    case .stopping: record(id, .interruption)
    default: break
    }
  }

  private mutating func loseLease(_ id: JobID) {
    switch jobs[id]?.state {
    case .running, .overrun:
      jobs[id]?.state = .stopping
      actions.append(.kill(id))
    case .preparing: jobs[id]?.leaseIsLost = true
    default: break
    }
  }

  /// A child that dies after its report counts as failed, because it may not have written everything.
  private mutating func ended(_ id: JobID, _ child: Child, _ exit: WorkerExit, _ overrun: Overrun?) {
    var failure = WorkerFailure(exit, overrun, child.fence)
    switch child.verdict {
    case .result: if exit == .status(0) { return record(id, .result) }
    case .failure(let reported): failure = reported
    case nil: break
    }
    if hasOtherNodes, failure.isOfDisk { return record(id, .postponement(failure)) }
    let failures = 1 + (jobs[id]?.failures ?? 0)
    record(id, failure.retry && failures < limits.maximumAttempts ? .retry(exit, failure) : .failure(failure))
  }

  // MARK: The end of an attempt

  private mutating func record(_ id: JobID, _ ending: Ending) {
    jobs[id]?.state = .ending
    actions.append(.record(id, ending))
  }

  private mutating func recorded(_ id: JobID, _ recorded: Recorded) {
    if case .over(let others) = recorded { for job in others { cancel(job) } }
    if clearIfCancelled(id) { return }
    guard case .ending = jobs[id]?.state else { return }
    switch recorded {
    case .over, .lost: end(id)
    case .again:
      jobs[id]?.noteFailure()
      pause(id)
    case .postponed(let seconds): pause(id, seconds: seconds)
    case .unwanted(let job): clearUnannounced(job)
    case .unwritten(let failure): hold(id, failure)
    }
  }

  /// Keeps the job's place until the catalog is asked again to take its claim or, if it has failed, its failure.
  private mutating func hold(_ id: JobID, _ failure: WorkerFailure?) {
    if isStopping { return leave(id) }
    jobs[id]?.state = .held(failure)
    actions.append(.hold(id, seconds: limits.retryPauseSeconds * 4))
  }

  private mutating func holdEnded(_ id: JobID) {
    guard case .held(let failure) = jobs[id]?.state else { return }
    if let failure { return record(id, .failure(failure)) }
    claim(id)
  }

  /// Without a time of its own, the pause doubles with each attempt.
  private mutating func pause(_ id: JobID, seconds: Double? = nil) {
    if isStopping { return leave(id) }
    guard let ended = schedule.end(id) else { preconditionFailure("a job without a place can't pause") }
    jobs[id]?.state = .pausing(ended)
    let attempts = max(jobs[id]?.attempts ?? 1, 1)
    actions.append(.pause(id, seconds: seconds ?? limits.retryPauseSeconds * Double(1 << min(attempts, 10))))
  }

  private mutating func pauseEnded(_ id: JobID) {
    guard case .pausing(let ended) = jobs[id]?.state else { return }
    jobs[id]?.state = .queued
    schedule.add(id, ended)
  }

  /// Ends a job. While the service is stopping, the job stays live, like those that the stop interrupted.
  mutating func end(_ id: JobID) {
    if !isStopping { actions.append(.forget(id)) }
    leave(id)
  }

  /// Frees the job's place and removes the job.
  mutating func leave(_ id: JobID) {
    schedule.end(id)
    if case .elsewhere(let job) = jobs[id]?.state { schedule.endElsewhere(job) }
    jobs[id] = nil
  }
}
