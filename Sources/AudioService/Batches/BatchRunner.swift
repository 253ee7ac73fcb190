import HTTP
import Jobs
import Storage
import Synchronization
import Terms

/// Begins the jobs of batches, one whenever a place is free and no other job waits for it, so that a batch of thousands
/// never holds up a single job. Clients take turns. Of several nodes, each does so with its own places.
final class BatchRunner: Sendable {
  private struct State {
    weak var context: Context?
    /// Whether there may be a batch that has not ended.
    var mayHaveOpen = true
    var isRunning = false
    var isWanted = false
    var isLookScheduled = false
    /// Those that had not ended at the last look.
    var open: [BatchID: Tenant] = [:]
    /// The number of each client's last turn.
    var turns: [String: Int] = [:]
    var turnCount = 0
    /// When the clients may go on for whom something was refused that may be possible later.
    var pauses: [String: Clock.Instant] = [:]
  }

  /// Seconds after which a batch goes on that had to stop, or that another node may have added.
  private static let pauseSeconds = 5.0
  private static let most = 1000

  private let catalog: Catalog
  private let work: WorkQueue
  private let state = Mutex(State())
  private var clock: Clock { catalog.clock }

  init(_ catalog: Catalog, _ work: WorkQueue) { (self.catalog, self.work) = (catalog, work) }

  /// Goes on with the batches that have not ended.
  func start(in context: Context) {
    state.withLock { $0.context = context }
    begin()
  }

  /// Looks for work after a batch was added or canceled.
  func begin() { look(afterJob: false) }

  /// Looks for work after a job has ended.
  func jobEnded() { look(afterJob: true) }

  private func look(afterJob: Bool) {
    let context = state.withLock { state -> Context? in
      if !afterJob { state.mayHaveOpen = true }
      guard state.mayHaveOpen, let context = state.context else { return nil }
      state.isWanted = true
      guard !state.isRunning else { return nil }
      state.isRunning = true
      return context
    }
    guard let context else { return }
    clock.begin()
    Task { [self] in
      while isStillWanted() { await fill(in: context) }
      clock.end()
    }
  }

  private func isStillWanted() -> Bool {
    state.withLock { state in
      (state.isRunning, state.isWanted) = (state.isWanted, false)
      return state.isRunning
    }
  }

  /// Begins jobs until no place is free.
  private func fill(in context: Context) async {
    do {
      while !context.changes.waitsHaveEnded {
        let open = try await work.run { [catalog] () throws(StorageError) in
          try catalog.openBatches(limit: Self.most)
        }
        note(open, in: context)
        guard let next = choose(among: open), await context.runner.hasIdlePlace() else { break }
        try await begin(next, in: context)
      }
    } catch {
      context.log.failure("batches could not be continued", ["error": logText(error)])
      lookLater()
    }
    if state.withLock({ !$0.pauses.isEmpty }) || catalog.isShared { lookLater() }
  }

  /// Tells those who wait of the batches that have ended since the last look.
  private func note(_ open: [Batch], in context: Context) {
    let ended = state.withLock { state in
      // Those beyond the limit aren't looked at.
      let last = open.count == Self.most ? open.last?.id : nil
      let now = Dictionary(uniqueKeysWithValues: open.map { ($0.id, $0.tenant) })
      let ended = state.open.filter { id, _ in now[id] == nil && (last.map { id < $0 } ?? true) }
      state.open = now
      state.mayHaveOpen = !now.isEmpty
      return ended
    }
    for (id, tenant) in ended {
      context.webhooks.jobEnded(JobID(id))
      context.changes.post(.batch(id), of: tenant)
    }
  }

  private func choose(among open: [Batch]) -> Batch? {
    let now = clock.now
    return state.withLock { state in
      state.pauses = state.pauses.filter { $0.value > now }
      let ready = open.filter { $0.begun < $0.total && !$0.isCancelled && state.pauses[$0.client] == nil }
      guard let next = ready.min(by: { state.turns[$0.client, default: 0] < state.turns[$1.client, default: 0] }) else {
        state.turns = [:]
        return nil
      }
      state.turnCount += 1
      state.turns[next.client] = state.turnCount
      return next
    }
  }

  private func begin(_ batch: Batch, in context: Context) async throws {
    let caller = Caller(of: batch.tenant, Client(key: batch.client), context)
    let source = try await work.run { [catalog] () throws(StorageError) -> Recording? in
      guard let id = try catalog.nextRecording(of: batch) else { return nil }
      return try caller.catalog.recording(id)
    }
    do {
      guard let operation = BatchOperation(batch), let source else { return try await pass(.failed, next: batch) }
      guard try await !operation.begin(source, next: batch, caller, context) else { return }
      try await pass(.succeeded, next: batch)
    } catch StorageError.changedMeanwhile {
      // Another node has begun it, or the batch was canceled.
    } catch {
      let refusal = problem(for: error)
      guard refusal.status.code < 500, refusal.status != .tooManyRequests else { return pause(batch, refusal) }
      let failure = JobError(
        title: "The job failed", status: refusal.status.code, detail: refusal.detail, code: refusal.code)
      try await pass(.failed, next: batch, job: source.map { self.job(batch, $0, failure) })
    }
  }

  /// The failed job that tells the client why its recording was passed over.
  private func job(_ batch: Batch, _ source: Recording, _ failure: JobError) -> Job {
    Job(
      kind: batch.kind, recording: source.id, state: .failed, createdAt: catalog.time, finishedAt: catalog.time,
      parameters: batch.parameters, error: RowJSON.text(failure), client: batch.client, batch: batch.id)
  }

  private func pass(_ ending: JobState, next batch: Batch, job: Job? = nil) async throws {
    try await work.run { [catalog] () throws(StorageError) in try catalog.pass(ending, next: batch, job: job) }
    state.withLock { $0.context }?.changes.post(.batch(batch.id), of: batch.tenant)
  }

  /// Leaves a client's batches alone for a while.
  private func pause(_ batch: Batch, _ refusal: Problem) {
    let asked = refusal.fields["Retry-After"].flatMap(Double.init) ?? Self.pauseSeconds
    let end = clock.instant(after: min(max(asked, Self.pauseSeconds), 60))
    state.withLock { $0.pauses[batch.client] = end }
  }

  private func lookLater() {
    let isNew = state.withLock { state in
      defer { state.isLookScheduled = true }
      return !state.isLookScheduled
    }
    guard isNew else { return }
    clock.after(Self.pauseSeconds, on: .global(qos: .utility)) { [weak self] in
      guard let self else { return }
      state.withLock { $0.isLookScheduled = false }
      begin()
    }
  }
}
