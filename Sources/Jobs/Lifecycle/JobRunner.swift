import Dispatch
import Storage
import Synchronization
import Terms
import Workers

/// The job queue. It runs a limited number of children at the same time, in the order of `JobSchedule`, and continues
/// unfinished jobs after a restart of the service.
///
/// `JobLifecycle` decides which actions to take. `JobRunner` performs them, blocking ones on a worker thread, and
/// returns their outcomes to it as events, on one serial queue.
///
/// The order of writes makes every crash harmless: a row says `running` before its child starts (the next start of the
/// service begins the job again), the files of a result are durable before one transaction finishes the job and the
/// recording, and a discarded result loses its row before its files.
package final class JobRunner: Sendable {
  /// The data of an attempt, from its claim to its end.
  struct Attempt {
    let claimed: ClaimedJob
    var request: WorkerRequest?
    /// What the worker reads; held until the attempt has ended.
    var files: SourceFiles?
    var worker: WorkerProcess?
    /// The last report that wasn't about progress.
    var report: WorkerReport?
    /// When the others were last told of its progress.
    var toldAt: Double?
  }

  struct State {
    var lifecycle: JobLifecycle
    var attempts: [JobID: Attempt] = [:]
    /// nil under the data folder's lock, where leases last as long as this process.
    var leases: LeaseKeeper?
    var isStopping = false
    var hasNotedUnfenced = false
    var isLookingAtDisk = false
    /// When that began last, in seconds since the start.
    var lookedAtDiskAt = -Double.infinity
    var onStopped: [CheckedContinuation<Void, Never>] = []
    var onDrained: [CheckedContinuation<Void, Never>] = []
  }

  /// The jobs that wait or run.
  package let live: LiveJobs
  private let settings: JobSettings
  let catalog: Catalog
  let scratch: Scratch
  let work: WorkQueue
  private let storeWork: StoreQueue
  let log: any JobLog
  /// For addresses that aren't proven.
  let addressLog: RateLimitedLog
  private let preparation: JobPreparation
  private let records: JobRecords
  private let stopping = CancellationFlag()
  let queue = DispatchQueue(label: "jobs")
  let state: Confined<State>
  let clock: Clock
  private let start: Clock.Instant
  /// Where other nodes can fetch the waveforms that jobs on this one write, as `HOST:PORT`; nil if they can't.
  let address = Mutex<String?>(nil)
  /// What proves addresses; nil if this node believes none.
  let addressProof = Mutex<(any AddressProof)?>(nil)
  /// The number of attempts that this process has given up for lost, because the process that made them, on any node,
  /// was gone or cut off.
  package let lostAttempts = Atomic(0)
  /// Counts jobs that wait or run, and requests that are about to submit one.
  private let tally: ClientTally
  /// The room of each job that waits or runs.
  private let rooms = Mutex<[JobID: TallyPlace]>([:])

  /// Creates a queue without jobs. `jobError` returns the error to store in the row of a failed job.
  package init(
    _ settings: JobSettings, catalog: Catalog, blobs: Blobs, scratch: Scratch, work: WorkQueue,
    storeWork: StoreQueue, log: any JobLog,
    jobError: @escaping @Sendable (WorkerFailure) -> JobError
  ) {
    self.settings = settings
    self.catalog = catalog
    self.scratch = scratch
    self.work = work
    self.storeWork = storeWork
    (self.log, addressLog) = (log, RateLimitedLog(log, catalog.clock))
    (clock, start, live) = (catalog.clock, catalog.clock.now, LiveJobs(catalog.clock))
    preparation = JobPreparation(settings: settings, catalog: catalog, objects: blobs.store, scratch: scratch, log: log)
    records = JobRecords(
      settings: settings, catalog: catalog, blobs: blobs, scratch: scratch, live: live, log: log,
      stopping: stopping, jobError: jobError)
    let limits = settings.clientLimits
    state = Confined(
      State(
        lifecycle: JobLifecycle(
          settings.lifecycle, hasOtherNodes: catalog.isShared, runningLimit: limits.running),
        leases: catalog.holder.terms.map(LeaseKeeper.init)))
    let mostQueued: @Sendable (Client) -> Int = { [common = settings.maximumQueuedPerClient] in
      limits.queued($0) ?? common
    }
    tally = ClientTally(limit: settings.maximumQueued, clientLimit: mostQueued)
    catalog.limitJobs(
      JobLimits(
        all: settings.maximumQueued,
        // The service's own work isn't refused.
        unfinished: { $0.isEmpty ? nil : mostQueued(Client(key: $0)) }, running: { limits.running(Client(key: $0)) }))
  }

  /// Tells other nodes from now on where they can fetch the waveforms that jobs here write: at `address`, `HOST:PORT`.
  package func announce(address: String) { self.address.withLock { $0 = address } }

  /// Believes from now on the addresses of other nodes that `proof` proves, and proves its own. Before, none counts.
  package func believeAddresses(with proof: some AddressProof) { addressProof.withLock { $0 = proof } }

  // MARK: Room

  /// Throws `.queueFull`, `.clientQueueFull`, `.clientDaySpent` or `.clientRunsNothing` if the client may not queue
  /// another job.
  package func checkRoom(for client: Client) throws(JobsError) {
    try checkLimits(of: client)
    do throws(ClientTally.Refusal) { try tally.check(client) } catch { throw Self.refusal(error) }
  }

  /// Reserves room for a job that the client is about to submit, so that simultaneous requests can't exceed the limits.
  /// Throws the same errors as `checkRoom`.
  package func reserve(for client: Client) throws(JobsError) -> TallyPlace {
    try checkLimits(of: client)
    return try room(for: client)
  }

  private func checkLimits(of client: Client) throws(JobsError) {
    if settings.clientLimits.running(client) == 0 { throw .clientRunsNothing }
    if let (limit, left) = settings.clientLimits.spentDay(client) {
      throw .clientDaySpent(limitSeconds: limit, retryAfter: left)
    }
  }

  private func room(for client: Client) throws(JobsError) -> TallyPlace {
    do throws(ClientTally.Refusal) { return try TallyPlace(of: client, in: tally) } catch { throw Self.refusal(error) }
  }

  private static func refusal(_ refusal: ClientTally.Refusal) -> JobsError {
    switch refusal {
    case .full(let limit): .queueFull(limit: limit)
    case .clientIsFull(let limit): .clientQueueFull(limit: limit)
    }
  }

  // MARK: Jobs

  /// Queues a job whose row is in the catalog, for the client named in the row. The work is estimated from `source`;
  /// without it, the job counts as short. `room` is the room reserved for the job; without it, the job is queued
  /// regardless of the limits. A job that waits or runs already isn't queued again.
  package func submit(_ job: Job, source: Recording? = nil, room: TallyPlace? = nil) {
    let client = Client(key: job.client)
    let room = room ?? TallyPlace(adding: client, to: tally)
    let isNew = rooms.withLock { rooms in
      guard rooms[job.id] == nil else { return false }
      rooms[job.id] = room
      return true
    }
    guard isNew else { return }
    let kind = job.kind.definition
    live.insert(job.id, LiveJob(attempts: job.attempts, tenant: job.tenant, recording: kind.writtenRecording(of: job)))
    let samples = source.map { Double($0.format.frames ?? $0.format.estimatedFrames ?? 0) * Double($0.format.channels) }
    let work = kind.cost(samples: samples ?? 0)
    clock.async(on: queue) { [self] in take(.submitted(job.id, work, client)) }
  }

  /// Whether a job waits or runs here, or elsewhere.
  func isKnown(_ id: JobID) -> Bool { rooms.withLock { $0[id] != nil } }

  /// The jobs that wait or run, here and elsewhere.
  var known: [JobID] { rooms.withLock { Array($0.keys) } }

  /// Whether a client's short work may be done outside the queue: not if the number of its running jobs is limited.
  package func mayWorkEarly(for client: Client) -> Bool { settings.clientLimits.running(client) == nil }

  /// Logs and announces a job that was over before it could be queued.
  package func announce(early job: Job) {
    log.job(job)
    live.insert(job.id, LiveJob(tenant: job.tenant, recording: job.kind.definition.writtenRecording(of: job)))
    live.remove(job.id)
  }

  /// Whether a place is free and no job waits for one, so that a batch may begin another job.
  package func hasIdlePlace() async -> Bool {
    await withCheckedContinuation { continuation in
      clock.async(on: queue) { [self] in continuation.resume(returning: state.value.lifecycle.hasIdlePlace) }
    }
  }

  /// Queues a job for another client as well, so that it begins when the turn of either comes.
  package func join(_ id: JobID, for client: Client) {
    clock.async(on: queue) { [self] in take(.joined(id, client)) }
  }

  /// Queues the jobs that were unfinished when the service last ended.
  package func resume() throws(StorageError) {
    // The service was killed, which isn't the jobs' fault, so it counts as an interruption.
    lostAttempts.wrappingAdd(try catalog.endLostLeases(), ordering: .relaxed)
    for job in try catalog.unfinishedJobs() { admit(job, source: try catalog.recording(job.recording)) }
    keepLeases()
  }

  /// Ends the children of jobs whose rows already say `cancelled`, and removes the jobs' files.
  package func cancel(_ jobs: [Job]) {
    clock.async(on: queue) { [self] in
      for job in jobs { take(.cancelled(job)) }
    }
  }

  /// Begins no more jobs. Returns when none runs here, or after `seconds`.
  package func drain(within seconds: Double) async {
    await withCheckedContinuation { continuation in
      clock.async(on: queue) { [self] in
        state.value.onDrained.append(continuation)
        take(.drain)
      }
      clock.after(seconds, on: queue) { [self] in resumeDrained() }
    }
  }

  /// Ends all children and sets their rows back to `queued`, so that the next start begins them again. The interrupted
  /// attempts don't count as failures.
  package func stop() async {
    await withCheckedContinuation { continuation in
      clock.async(on: queue) { [self] in
        state.value.isStopping = true
        stopping.set()
        state.value.onStopped.append(continuation)
        take(.stop)
      }
    }
  }

  /// Waits for a change of a job; see `LiveJobs.waitForChange`.
  package func waitForChange(of id: JobID, seconds: Double) async {
    await live.waitForChange(of: id, seconds: seconds)
  }

  // MARK: Events

  func take(_ event: JobLifecycle.Event) {
    dispatchPrecondition(condition: .onQueue(queue))
    for action in state.value.lifecycle.on(event, at: now) { perform(action) }
  }

  /// The seconds since the start.
  var now: Double { clock.seconds(since: start) }

  /// Handles an event after `seconds`.
  private func take(_ event: JobLifecycle.Event, after seconds: Double) {
    clock.after(seconds, on: queue) { [self] in take(event) }
  }

  /// Does blocking work on a worker thread, or if it asks something of the store, on one of the store's; then handles
  /// the event that `note` returns for its outcome.
  private func run<Outcome: Sendable>(
    asking load: StoreQueue.Load? = nil, _ body: @escaping @Sendable () -> Outcome,
    then note: @escaping @Sendable (Outcome) -> JobLifecycle.Event
  ) {
    clock.begin()
    let step = { @Sendable [self] in
      let outcome = body()
      clock.async(on: queue) { [self] in take(note(outcome)) }
      clock.end()
    }
    // Jobs are few. If too many requests wait for the store, theirs nevertheless go on.
    guard let load, storeWork.start(as: load, step) else { return work.start(step) }
  }

  /// Does blocking work on a worker thread.
  func start(_ body: @escaping @Sendable () -> Void) {
    clock.begin()
    work.start { [clock] in
      body()
      clock.end()
    }
  }

  // MARK: Actions

  private func perform(_ action: JobLifecycle.Action) {
    switch action {
    case .claim(let id, let failed):
      let askedAt = now
      run({ [preparation] in preparation.claim(id, failed: failed) }, then: { [self] in note($0, id, askedAt) })
    case .prepare(let id): prepare(id)
    case .start(let id, let idlePlaces): start(id, idlePlaces)
    case .kill(let id): state.value.attempts[id]?.worker?.kill()
    case .record(let id, let ending): record(ending, of: id)
    case .hold(let id, let seconds): take(.holdEnded(id), after: seconds)
    case .pause(let id, let seconds):
      end(id)
      live.update(id) { $0.isRunning = false }
      take(.pauseEnded(id), after: seconds)
    case .clear(let job):
      end(job.id)
      run(asking: .brief, { [records] in records.removeLeftovers(of: job) }, then: { .cleared(job.id) })
    case .forget(let id):
      end(id)
      _ = rooms.withLock { $0.removeValue(forKey: id) }
      live.remove(id)
    case .watch(let seconds): take(.tick, after: seconds)
    case .drained: resumeDrained()
    case .stopped:
      for continuation in state.value.onStopped { continuation.resume() }
      state.value.onStopped = []
    }
  }

  private func resumeDrained() {
    for continuation in state.value.onDrained { continuation.resume() }
    state.value.onDrained = []
  }

  /// Forgets the attempt at a job.
  private func end(_ id: JobID) {
    guard let attempt = state.value.attempts.removeValue(forKey: id) else { return }
    state.value.leases?.ended(attempt.claimed.token)
  }

  private func note(_ claim: JobPreparation.Claim, _ id: JobID, _ askedAt: Double) -> JobLifecycle.Event {
    switch claim {
    case .claimed(let claimed):
      let job = claimed.job
      // An earlier attempt whose end couldn't be written.
      end(id)
      state.value.attempts[id] = Attempt(claimed: claimed)
      granted(claimed.token, askedAt: askedAt)
      return .claimed(id, attempts: job.attempts, failures: job.failures, losses: job.losses)
    case .refused(let refusal): return .refused(id, refusal)
    case .failed(let failure): return .notBegun(id, failure)
    }
  }

  private func prepare(_ id: JobID) {
    guard let attempt = state.value.attempts[id] else { preconditionFailure("the job has not been claimed") }
    let load = StoreQueue.Load.transfer(Client(key: attempt.claimed.job.client))
    run(asking: load, { [preparation] in preparation.prepare(attempt.claimed) }) { [self] preparation in
      switch preparation {
      case .ready(let request, let files, let fence):
        state.value.attempts[id]?.request = request
        state.value.attempts[id]?.files = files
        return .prepared(id, fence)
      case .failed(let failure): return .notBegun(id, failure)
      case .storeFailed(let failure): return .storeFailed(id, failure)
      }
    }
  }

  private func start(_ id: JobID, _ idlePlaces: Int) {
    guard let claimed = state.value.attempts[id]?.claimed, var request = state.value.attempts[id]?.request else {
      preconditionFailure("the attempt has not been prepared")
    }
    let job = claimed.job
    // One for its own place, and those that no other job uses or waits for.
    request.threads = min(1 + idlePlaces, job.kind.definition.threadLimit)
    let work = request.work
    state.value.attempts[id]?.request = request
    log.began(job)
    live.update(id) { live in
      live.isRunning = true
      live.attempts = job.attempts
      live.startedAt = clock.now
      live.progress = nil
      live.writer = claimed.token
      live.address = nil
    }
    state.value.attempts[id]?.worker = WorkerProcess.start(
      program: settings.workers.program, template: settings.workers.template, request, .job, queue: queue,
      onReport: { [self] in heard($0, id, work) }, onExit: { [self] in take(.exited(id, $0)) })
  }

  private func heard(_ report: WorkerReport, _ id: JobID, _ work: WorkerRequest.Work) {
    switch report {
    case .progress(let progress):
      live.update(id) { $0.progress = progress }
      tellOthers(report, id)
      take(.progressed(id, diskIsFull: false))
      lookAtDisk(for: id)
    case .unfenced(let errno):
      guard !state.value.hasNotedUnfenced else { return }
      state.value.hasNotedUnfenced = true
      log.notice("workers run without a system call filter: the kernel refuses it", ["errno": "\(errno)"])
    default:
      state.value.attempts[id]?.report = report
      take(.reported(id, report.verdict(on: work)))
    }
  }

  /// Ends a job that is writing if jobs have used up half of the reserved disk space; the other half is for the
  /// catalog. Looks at most once a second, whatever number of jobs reports, and on a worker thread, because a disk that
  /// hangs must not keep leases from being renewed.
  private func lookAtDisk(for id: JobID) {
    guard !state.value.isLookingAtDisk, now - state.value.lookedAtDiskAt >= 1 else { return }
    (state.value.isLookingAtDisk, state.value.lookedAtDiskAt) = (true, now)
    let (scratch, least) = (scratch, settings.reservedDiskBytes / 2)
    run({ (try? scratch.freeBytes()).map { $0 < least } ?? false }) { [self] isFull in
      state.value.isLookingAtDisk = false
      return .progressed(id, diskIsFull: isFull)
    }
  }

  private func record(_ ending: JobLifecycle.Ending, of id: JobID) {
    let (attempt, records) = (state.value.attempts[id], records)
    let (claimed, request, report) = (attempt?.claimed, attempt?.request, attempt?.report)
    let load: StoreQueue.Load? =
      switch ending {
      case .result: .transfer(Client(key: claimed?.job.client ?? ""))
      // Before the lease ends, whatever waits for the store.
      case .interruption: nil
      case .failure, .retry, .postponement: .brief
      }
    run(
      asking: load,
      {
        switch (ending, claimed) {
        case (.failure(let failure), let claimed?): return records.fail(claimed, failure)
        case (.failure(let failure), nil): return records.failUnclaimed(id, failure)
        case (.interruption, let claimed?): return records.interrupt(claimed)
        case (.postponement(let failure), let claimed?): return records.postpone(claimed, failure)
        case (.retry(let exit, let failure), let claimed?): return records.retry(claimed, exit, failure)
        case (.result, let claimed?):
          guard let request, let report else { return records.fail(claimed, JobLifecycle.gaveUp) }
          return records.succeed(claimed, report, of: request)
        case (_, nil): preconditionFailure("the job has not been claimed")
        }
      }
    ) { .recorded(id, $0) }
  }
}

extension WorkerReport {
  /// The end of the work according to this report; nil if it's the result of different work.
  fileprivate func verdict(on work: WorkerRequest.Work) -> JobLifecycle.Verdict? {
    if let failure { .failure(failure) } else { isResult(of: work) ? .result : nil }
  }
}

/// A value that a serial queue protects. The owner accesses it only on that queue.
final class Confined<Value>: @unchecked Sendable {
  var value: Value

  init(_ value: Value) { self.value = value }
}
