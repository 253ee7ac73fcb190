import Dispatch
import Glibc
import Processing
import Storage
import Synchronization

/// The queue of jobs: runs at most as many children as there are cores, in the order of `JobSchedule`, and sees each
/// job to its end, also over a restart of the service.
///
/// The order of writes makes every crash harmless: a row says `running` before its child starts (the next start begins
/// it again), the files of a result are durable before one transaction makes job and recording finished, and a result
/// that was given up loses its row before its files.
final class JobRunner: Sendable {
  /// A child, from the moment a place is taken for it.
  private struct Running {
    var worker: WorkerProcess?
    var request: WorkerRequest?
    var last: WorkerReport?
    /// The job with its row as it was cancelled.
    var cancelled: Job?
    var wasCancelled: Bool { cancelled != nil }
    /// Why the child is being ended before its time.
    var overrun: Overrun?
    var startedAt = ContinuousClock.now
    /// How long the child may run.
    var secondsAllowed = Double.infinity
    /// When the child last got on, or was started.
    var lastHeard = ContinuousClock.now
  }

  private struct State {
    var schedule: JobSchedule
    var running: [JobID: Running] = [:]
    /// Jobs that wait for their next attempt.
    var pausing: Set<JobID> = []
    var isStopping = false
    var hasToldUnfenced = false
    var isWatching = false
    var onIdle: CheckedContinuation<Void, Never>?
  }

  let live = LiveJobs()
  private let configuration: Configuration
  private let catalog: Catalog
  private let store: MediaStore
  private let work: WorkQueue
  private let log: ServiceLog
  private let records: JobRecords
  private let queue = DispatchQueue(label: "jobs")
  private let state: Confined<State>
  /// Jobs that wait or run, and requests that are about to bring one.
  private let tally: ClientTally
  /// The room of each job, until it neither waits nor runs any more.
  private let rooms = Mutex<[JobID: JobRoom]>([:])

  init(_ configuration: Configuration, catalog: Catalog, store: MediaStore, work: WorkQueue, log: ServiceLog) {
    self.configuration = configuration
    self.catalog = catalog
    self.store = store
    self.work = work
    self.log = log
    records = JobRecords(configuration, catalog: catalog, store: store, live: live, log: log)
    state = Confined(State(schedule: JobSchedule(places: configuration.workerCount)))
    tally = ClientTally(
      limit: configuration.maximumQueuedJobs, clientLimit: configuration.maximumQueuedJobsPerClient)
  }

  // MARK: Room

  /// Throws `.queueFull` or `.limitReached` where the client may have no other job wait.
  func checkRoom(for client: Client) throws(ServiceError) {
    do throws(ClientTally.Refusal) { try tally.check(client) } catch { throw Self.words(error) }
  }

  /// Room for a job that the client is about to submit, so that of many requests at once only so many come through.
  /// Throws as `checkRoom` does.
  func reserve(for client: Client) throws(ServiceError) -> JobRoom {
    do throws(ClientTally.Refusal) { return try JobRoom(of: client, in: tally) } catch { throw Self.words(error) }
  }

  private static func words(_ refusal: ClientTally.Refusal) -> ServiceError {
    switch refusal {
    case .full(let limit): .queueFull(limit: limit)
    case .clientIsFull(let limit): .limitReached("queued_jobs", limit: limit, retryAfter: 10)
    }
  }

  // MARK: Coming and going

  /// Queues a job whose row is in the catalogue, for the client that its row names; `source` tells how much work it is.
  /// Without one it counts as short. `room`: what was reserved for it; without it the job counts whatever the limits.
  func submit(_ job: Job, source: Recording? = nil, room: JobRoom? = nil) {
    let client = Client(key: job.client)
    let room = room ?? JobRoom(adding: client, to: tally)
    rooms.withLock { $0[job.id] = room }
    // A conversion writes no recording's waveform.
    let written = job.kind == .convert ? RecordingID() : job.output ?? job.recording
    live.insert(job.id, LiveJob(attempts: job.attempts, recording: written))
    let samples = source.map { Double($0.format.frames ?? $0.format.estimatedFrames ?? 0) * Double($0.format.channels) }
    let work = JobSchedule.Work(job.kind, samples: samples ?? 0)
    queue.async { [self] in
      state.value.schedule.add(job.id, work, for: client)
      fill()
    }
  }

  /// Has another client wait for a job, so that it runs when the turn of either comes.
  func join(_ id: JobID, for client: Client) {
    queue.async { [self] in state.value.schedule.join(id, for: client) }
  }

  /// The job neither waits nor runs any more.
  private func forget(_ id: JobID) {
    _ = rooms.withLock { $0.removeValue(forKey: id) }
    live.remove(id)
  }

  /// Queues what an earlier life of the service left unfinished.
  func resume() throws(StorageError) {
    for job in try catalog.unfinishedJobs() {
      if job.state == .running {
        // Its service was killed: as little the job's fault as a stop.
        try catalog.update(job.id) { job in
          job.state = .queued
          job.interruptions += 1
        }
      }
      submit(job, source: try catalog.recording(job.recording))
    }
  }

  /// Ends the children of jobs whose rows say `cancelled` already, and removes what they wrote.
  func cancel(_ jobs: [Job]) {
    queue.async { [self] in
      for job in jobs { cancel(job) }
    }
  }

  private func cancel(_ job: Job) {
    state.value.schedule.remove(job.id)
    if state.value.running[job.id] != nil {
      state.value.running[job.id]?.cancelled = job
      state.value.running[job.id]?.worker?.kill()
    } else {
      state.value.pausing.remove(job.id)
      work.start { [records] in records.removeLeftovers(of: job) }
    }
    forget(job.id)
  }

  /// Ends all children; their rows say `queued` again, for the next start to begin them. That attempt is not held
  /// against the job.
  func stop() async {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        state.value.isStopping = true
        state.value.schedule.removeAll()
        guard !state.value.running.isEmpty else { return continuation.resume() }
        state.value.onIdle = continuation
        for running in state.value.running.values { running.worker?.kill() }
      }
    }
  }

  func waitForChange(of id: JobID, seconds: Double) async {
    await live.waitForChange(of: id, seconds: seconds)
  }

  // MARK: One attempt

  private func fill() {
    dispatchPrecondition(condition: .onQueue(queue))
    while !state.value.isStopping, let id = state.value.schedule.begin() {
      state.value.running[id] = Running()
      work.start { [self] in prepare(id) }
    }
  }

  /// Writes that the job runs, makes its folder, then starts its child.
  private func prepare(_ id: JobID) {
    do {
      let job = try catalog.update(id) { job in
        guard !job.state.isFinished else { return }
        job.state = .running
        job.attempts += 1
        job.startedAt = .now
      }
      guard let job, job.state == .running, var source = try catalog.recording(job.recording) else {
        // Cancelled meanwhile; an earlier attempt may have written something.
        if let job, job.state == .cancelled { records.removeLeftovers(of: job) }
        return queue.async { [self] in leave(id) }
      }
      let fence = WorkerFence.job(on: source, configuration)
      guard job.failures < configuration.maximumAttempts else {
        return take(records.fail(job, JobRecords.gaveUp), job.id)
      }
      let files = MissingFiles(catalog: catalog, store: store)
      if let fault = try files.settle(source) { return take(records.fail(job, fault.failure), job.id) }
      // The child makes one for itself.
      if files.hasLostWorkingCopy(source) { source.workingFile = nil }
      if job.kind == .waveform { _ = try catalog.update(job.recording) { $0.waveformState = .building } }
      if let output = job.output { _ = try catalog.update(output) { $0.waveformState = .building } }
      let request = try WorkerRequest(
        job, source: source, sourceFolder: store.folder(of: source.id), folder: try store.makeWorkFolder(of: id),
        configuration)
      queue.async { [self] in start(job, request, fence) }
    } catch StorageError.diskFull {
      fail(id, .diskFull)
    } catch StorageError.io(_, _, EROFS) {
      fail(id, Self.diskIsReadOnly)
    } catch {
      log.failure("a job could not be begun", ["job": id.text, "error": "\(error)"])
      queue.async { [self] in retry(id, attempts: 1) }
    }
  }

  private static let diskIsReadOnly = WorkerFailure(
    code: "io_error", detail: "The service can't write to its disk now; nothing is wrong with the file.", retry: false)

  private func fail(_ id: JobID, _ failure: WorkerFailure) {
    do {
      guard let job = try catalog.job(id) else { return queue.async { [self] in leave(id) } }
      take(records.fail(job, failure), id)
    } catch {
      log.failure("a job could not be begun", ["job": id.text, "error": "\(error)"])
      queue.async { [self] in retry(id, attempts: 1) }
    }
  }

  private func start(_ job: Job, _ request: WorkerRequest, _ fence: WorkerFence) {
    guard state.value.running[job.id]?.wasCancelled == false, !state.value.isStopping else {
      return ended(job, .status(1), fence)
    }
    var request = request
    request.threads = threads(for: job)
    state.value.running[job.id]?.request = request
    live.update(job.id) { live in
      live.isRunning = true
      live.attempts = job.attempts
      live.startedAt = .now
      live.progress = nil
      live.pyramidPath = request.pyramid
      live.finishedPyramidPath = store.folder(of: job.output ?? job.recording) + "/" + job.pyramidName
    }
    state.value.running[job.id]?.startedAt = .now
    state.value.running[job.id]?.lastHeard = .now
    let worker = WorkerProcess.start(
      program: configuration.program, request, queue: queue, onReport: { [self] in heard($0, of: job.id) },
      onExit: { [self] in ended(job, $0, fence) })
    state.value.running[job.id]?.worker = worker
    state.value.running[job.id]?.secondsAllowed =
      configuration.jobSecondsPerProcessorSecond * Double(fence.processorSeconds)
    watch()
  }

  /// Looks at the children now and then, for as long as there are any: one timer for all.
  private func watch() {
    guard !state.value.isWatching, !state.value.running.isEmpty else { return }
    state.value.isWatching = true
    queue.asyncAfter(deadline: .now() + configuration.stallSeconds / 8) { [self] in
      state.value.isWatching = false
      for (id, running) in state.value.running {
        if let overrun = overrun(of: running) { end(id, overrun) }
      }
      watch()
    }
  }

  private func end(_ id: JobID, _ overrun: Overrun) {
    state.value.running[id]?.overrun = overrun
    state.value.running[id]?.worker?.kill()
  }

  /// Whether jobs have used up half of the reserve: the rest is the catalogue's.
  private var isDiskFull: Bool {
    guard let free = try? store.freeBytes() else { return false }
    return free < configuration.reservedDiskBytes / 2
  }

  private func overrun(of running: Running) -> Overrun? {
    let now = ContinuousClock.now
    if (now - running.lastHeard) / .seconds(1) > configuration.stallSeconds {
      return .stalled(seconds: configuration.stallSeconds)
    }
    guard (now - running.startedAt) / .seconds(1) > running.secondsAllowed else { return nil }
    return .tooLong(seconds: running.secondsAllowed)
  }

  /// A child may use the cores that nobody else is using or waiting for; noise removal has use for two.
  private func threads(for job: Job) -> Int? {
    guard job.kind != .convert else { return nil }
    let idle = state.value.schedule.hasWaiting ? 0 : max(state.value.schedule.freePlaces, 0)
    return 1 + (job.kind == .waveform ? idle : min(idle, 1))
  }

  private func heard(_ report: WorkerReport, of id: JobID) {
    switch report {
    case .progress(let progress):
      state.value.running[id]?.lastHeard = .now
      if isDiskFull { end(id, .diskFull) }
      live.update(id) { $0.progress = progress }
    case .unfenced(let errno):
      guard !state.value.hasToldUnfenced else { return }
      state.value.hasToldUnfenced = true
      log.notice("workers run without a filter of system calls: the kernel refuses it", ["errno": "\(errno)"])
    default: state.value.running[id]?.last = report
    }
  }

  private func ended(_ job: Job, _ exit: WorkerExit, _ fence: WorkerFence) {
    guard let running = state.value.running[job.id] else { return }
    if running.wasCancelled {
      leave(job.id)
    } else if state.value.isStopping {
      work.start { [self] in take(records.interrupted(job), job.id) }
    } else if exit == .status(0), let report = running.last, let request = running.request,
      report.isResult(of: request.work)
    {
      work.start { [self] in take(records.succeed(job, report, of: request), job.id) }
    } else {
      let failure = running.last?.failure ?? WorkerFailure(exit, running.overrun, fence)
      work.start { [self] in take(records.endedEarly(job, exit, failure), job.id) }
    }
  }

  /// Goes on as an attempt's end is recorded.
  private func take(_ next: JobRecords.Next, _ id: JobID) {
    switch next {
    case .over(let others):
      cancel(others)
      queue.async { [self] in leave(id) }
    case .retry(let attempts): queue.async { [self] in retry(id, attempts: attempts) }
    case .failLater(let job, let failure):
      // It keeps its place: a catalogue that takes no end takes no beginning either.
      queue.asyncAfter(deadline: .now() + configuration.retryPauseSeconds * 4) { [self] in
        guard !state.value.isStopping else { return leave(id) }
        work.start { [self] in take(records.fail(job, failure), id) }
      }
    }
  }

  /// Tries again after a pause that doubles each time; not what was cancelled meanwhile, and not while stopping.
  private func retry(_ id: JobID, attempts: Int) {
    guard state.value.running[id]?.wasCancelled == false, !state.value.isStopping else { return leave(id) }
    state.value.running[id] = nil
    state.value.pausing.insert(id)
    live.update(id) { $0.isRunning = false }
    guard let ended = state.value.schedule.end(id) else { preconditionFailure("a job that ran was begun") }
    queue.asyncAfter(deadline: .now() + configuration.retryPauseSeconds * Double(1 << min(attempts, 10))) { [self] in
      guard state.value.pausing.remove(id) != nil, !state.value.isStopping else { return }
      state.value.schedule.add(id, ended.work, for: ended.client)
      fill()
    }
    fill()
  }

  /// The place is free again. However the attempt of a cancelled job ended, what it wrote is removed first.
  private func leave(_ id: JobID) {
    if let cancelled = state.value.running[id]?.cancelled {
      state.value.running[id]?.cancelled = nil
      return work.start { [self] in
        records.removeLeftovers(of: cancelled)
        queue.async { [self] in leave(id) }
      }
    }
    state.value.running[id] = nil
    state.value.schedule.end(id)
    if state.value.running.isEmpty, let idle = state.value.onIdle {
      state.value.onIdle = nil
      idle.resume()
    }
    if !state.value.isStopping { forget(id) }
    fill()
  }
}

extension WorkerReport {
  /// Whether a child that ended well has said what it made.
  fileprivate func isResult(of work: WorkerRequest.Work) -> Bool {
    switch (work, self) {
    case (.waveform, .analyzed), (.denoise, .denoised), (.convert, .converted): true
    default: false
    }
  }
}

/// A value that one serial queue protects; the owner sees to it that it is touched there only.
private final class Confined<Value>: @unchecked Sendable {
  var value: Value

  init(_ value: Value) { self.value = value }
}
