import FoundationEssentials
import Synchronization
import Terms

/// The recordings and jobs of a data directory, in a database. Thread-safe.
///
/// Every call blocks on the disk and up to 5 s on other writers; call it on a worker queue, never on an event loop.
/// Every call is one transaction. Committed writes survive a power failure. Closures passed to a call run inside the
/// transaction: they must be brief and must not call the catalog. Those of writing calls may run several times, so they
/// can't change variables outside.
package final class Catalog: Sendable {
  let engine: any SQLEngine
  /// The process that opened the catalog, as the owner of the attempts that it begins.
  package let holder: LeaseHolder
  private let changes = ChangeCounts()
  let descriptions = Mutex<DescriptionKeeper?>(nil)
  private let onChange = Mutex<Listener?>(nil)
  private let jobLimits = Mutex<JobLimits?>(nil)
  let namesDeletedObjects = Atomic<Bool>(false)
  /// How long each write holds the catalog.
  package let writeWatch: WriteWatch
  /// nil if only this process uses the database.
  private let feed: CatalogFeed?
  private let writes = Atomic<UInt64>(0)
  /// What everything that works on the catalog waits and measures by.
  package let clock: Clock
  private let reads = Atomic<UInt64>(0)
  private let checkMicroseconds = Atomic<Int64>(0)
  /// The catalog's time in milliseconds when this machine was started; `.min` before clocks have been compared.
  private let timeAtBoot = Atomic<Int64>(.min)
  private let clockWatch = Mutex(ClockWatch())
  /// Wraps a closure, because each access to one that is a mutex's value itself would wrap it in another closure, so
  /// that calling it would take longer and longer.
  private struct Listener {
    let call: @Sendable (CatalogChanges) -> Void
  }

  /// How long reading and writing calls take, including their wait for other writers.
  package let readTimes = Histogram.ofSeconds()
  /// How long writing calls take, including their wait for other writers.
  package let writeTimes = Histogram.ofSeconds()
  /// What startup found, for status queries.
  package let startReport = Mutex(SweepReport())

  /// Opens the catalog in the SQLite file at `path`: creates it if missing, and migrates an older one.
  ///
  /// Throws `.newerSchema` or `.unreleasedSchema` if another version of the program wrote it, and `.damagedCatalog` if
  /// it can't be read.
  package convenience init(
    path: String, holder: LeaseHolder = LeaseHolder(), clock: Clock = .system
  ) throws(StorageError) {
    self.init(engine: try SQLiteEngine(path: path), holder: holder, clock: clock)
  }

  /// Creates a catalog in the database of an engine, whose tables are up to date. `bus` connects it to other processes
  /// that use the database.
  package init(
    engine: any SQLEngine, holder: LeaseHolder = LeaseHolder(), bus: (any ChangeBus)? = nil,
    clock: Clock = .system
  ) {
    (self.engine, self.holder, self.clock) = (engine, holder, clock)
    writeWatch = WriteWatch(clock)
    feed = bus.map { CatalogFeed($0, node: holder.node, clock) }
  }

  /// From now on, keeps the description in every recording's folder in sync with its row. Call it once, before the
  /// first change. Calls `onFailure` if a description can't be written; the row is durable regardless.
  ///
  /// `later` runs work on a thread that may wait for the store, or returns false if too much waits already. With it,
  /// changes that clients ask for don't wait for their descriptions if rows have others write them.
  package func keepDescriptions(
    in store: Descriptions, later: DescriptionKeeper.Start? = nil,
    onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void
  ) {
    let keeper = DescriptionKeeper(store: store, later: later, onFailure: onFailure)
    descriptions.withLock { $0 = keeper }
  }

  /// From now on, calls `action` after every commit with what it changed, when readers already see it. `action` must be
  /// brief. Call this once, before the first change.
  package func whenChanged(_ action: @escaping @Sendable (CatalogChanges) -> Void) {
    onChange.withLock { $0 = Listener(call: action) }
  }

  /// From now on, keeps limits on each client's jobs in the transactions that insert and claim them, if other processes
  /// share the catalog. Call this once, before the first job.
  package func limitJobs(_ limits: JobLimits) { jobLimits.withLock { $0 = limits } }

  /// The limits that the transactions of a shared catalog keep.
  var sharedJobLimits: JobLimits? { isShared ? jobLimits.withLock { $0 } : nil }

  /// Makes the catalog's main file complete, so that it can be copied by itself. Others may keep reading.
  package func checkpoint() throws(StorageError) { try engine.checkpoint() }

  /// Frees what the catalog keeps in memory of its file. May wait for a write in progress.
  package func releaseMemory() { engine.releaseMemory() }

  /// Calls `checkpoint` and closes the catalog. No other call may be in progress or follow.
  package func close() throws(StorageError) { try engine.close() }

  /// The present time by the clock that everyone who shares the catalog goes by. It is the database's, as of when the
  /// clocks were compared last, which happens every few seconds, plus the time since then. So it doesn't follow this
  /// machine's clock when that is set. Before the first comparison, and without a database server, it does.
  package var time: Timestamp {
    let start = timeAtBoot.load(ordering: .relaxed)
    return start == .min ? clock.time : Timestamp(milliseconds: start + clock.bootMilliseconds)
  }

  /// Notes what the catalog's clock said, which took so long to hear. What is heard late, perhaps because this process
  /// was stopped meanwhile, would set its time back, and counts only if nothing better is known.
  func note(clock heard: Timestamp, after delay: Duration = .zero) {
    guard delay < .seconds(1) || timeAtBoot.load(ordering: .relaxed) == .min else { return }
    timeAtBoot.store(heard.milliseconds - clock.bootMilliseconds, ordering: .relaxed)
    watch(heard)
  }

  /// Notes this machine's clock, which is also the catalog's, unless another one was noted.
  func noteOwnClock(_ time: Timestamp) {
    if timeAtBoot.load(ordering: .relaxed) == .min { watch(time) }
  }

  private func watch(_ time: Timestamp) {
    let (own, sinceBoot) = (clock.wallMilliseconds, clock.bootMilliseconds)
    clockWatch.withLock { $0.hear(time.milliseconds, own: own, sinceBoot: sinceBoot) }
  }

  /// Why the catalog's time may be wrong, as of when the clocks were compared last; nil if nothing says so. As long as
  /// there is a doubt, nothing may be deleted because of its age.
  package var clockDoubt: ClockDoubt? {
    let now = clock.bootMilliseconds
    return clockWatch.withLock { $0.doubt(sinceBoot: now) }
  }

  /// Compares the clock with what was heard of it before this process was started, by any; without a note of that, with
  /// the newest recording. Call it after `compareClocks`, and before anything is deleted because of its age.
  package func resumeClock() throws(StorageError) {
    let text = try read { try $0.first("SELECT clock FROM heartbeat", as: String.self) }
    var memory = text.flatMap { try? JSONDecoder().decode(ClockMemory.self, from: Data($0.utf8)) }
    if memory == nil, let newest = try recordings(limit: 1).first?.createdAt.milliseconds {
      memory = ClockMemory(heard: newest, boot: "", sinceBoot: 0)
    }
    guard let memory else { return }
    let (time, now) = (time, clock.bootMilliseconds)
    clockWatch.withLock { $0.resume(memory, time.milliseconds, boot: Timestamp.boot, sinceBoot: now) }
  }

  /// Keeps what was heard of the clock for `resumeClock`.
  package func rememberClock() throws(StorageError) {
    let now = clock.bootMilliseconds
    guard let memory = clockWatch.withLock({ $0.memory(boot: Timestamp.boot, sinceBoot: now) }) else { return }
    // Like `check`.
    _ = try engine.write(.statementLocks) {
      try CatalogTransaction($0).run(
        "INSERT INTO heartbeat (id, beats, clock) VALUES (1, 1, ?) ON CONFLICT (id) DO UPDATE SET clock = excluded.clock",
        [String(decoding: try JSONEncoder().encode(memory), as: UTF8.self)])
    }
  }

  /// How far the catalog's clock is ahead of this machine's, in seconds.
  package var clockDifferenceSeconds: Double { Double(clockWatch.withLock { $0.difference }) / 1000 }

  /// How long the last successful `check` took, in seconds; 0 before the first.
  package var checkSeconds: Double { Double(checkMicroseconds.load(ordering: .relaxed)) / 1e6 }

  /// Writes a row to check that the catalog is writable. Throws the cause if not, such as `.diskFull`.
  package func check() throws(StorageError) {
    let start = clock.now
    // Bypasses the catalog's `write`, because it changes nothing that readers see. Nodes share the row and don't read
    // it, so they need not be kept apart.
    _ = try engine.write(.statementLocks) { try Self.beat(CatalogTransaction($0)) }
    checkMicroseconds.store(Int64(clock.seconds(since: start) * 1e6), ordering: .relaxed)
  }

  /// Writes a row that is never read. Its number grows, because SQLite skips an update that changes nothing.
  static func beat(_ db: CatalogTransaction) throws {
    try db.run(
      "INSERT INTO heartbeat (id, beats) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET beats = heartbeat.beats + 1")
  }

  func read<Value>(_ body: (CatalogTransaction) throws -> Value) throws(StorageError) -> Value {
    reads.wrappingAdd(1, ordering: .relaxed)
    return try readTimes.time(by: clock) { () throws(StorageError) in
      try engine.read { try body(CatalogTransaction($0)) }
    }
  }

  /// Throws if the catalog can't accept writes because it is damaged, removed, or replaced. Costs two system calls.
  package func checkFile() throws(StorageError) { try engine.checkUsable() }

  /// Number of reading calls so far.
  package var readCount: UInt64 { reads.load(ordering: .relaxed) }

  /// When the recordings that a transaction has changed are described.
  enum DescribingTime: Sendable {
    /// Before the call returns, which may take the store's time.
    case now
    /// Soon, if there are threads for it; otherwise before the call returns.
    case later
  }

  /// Runs `body` in a transaction and describes what it has changed. `kind` names the change to people.
  @discardableResult
  func write<Value: Sendable>(
    _ isolation: SQLIsolation = .serializable, describing time: DescribingTime = .now, isAudited: Bool = true,
    kind: StaticString = #function,
    _ body: @Sendable (CatalogTransaction) throws -> Value
  ) throws(StorageError) -> Value {
    // Under a lock, the catalog is in the same folder as the media. Several nodes' isn't, and must not wait for theirs.
    if !isShared { try descriptions.withLock { $0 }?.store.checkClaim() }
    let (value, changed, undescribed) = try writeTimes.time(by: clock) { () throws(StorageError) in
      try commit(isolation, kind, isAudited ? AuditTrail.current : nil, body)
    }
    // First, because a description may take a store's time.
    tell(changed)
    for recording in undescribed {
      switch time {
      case .now: describe(recording)
      case .later: describeLater(recording)
      }
    }
    return value
  }

  private func tell(_ changed: CatalogChanges) { onChange.withLock { $0 }?.call(changed) }

  /// Runs `body` in a transaction, which also has the lines of a trail. Returns its result, what it changed, and the
  /// recordings that have to be described.
  private func commit<Value: Sendable>(
    _ isolation: SQLIsolation, _ kind: StaticString, _ trail: AuditTrail?,
    _ body: @Sendable (CatalogTransaction) throws -> Value
  ) throws(StorageError) -> (Value, CatalogChanges, [Recording]) {
    defer { writes.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    let committed: (Value, CatalogChanges, [Recording])
    let isNoted: Bool
    let hold = WriteHold(writeWatch, kind)
    defer { hold.end() }
    do throws(StorageError) {
      (committed, isNoted) = try engine.write(isolation) { session in
        hold.begin()
        let transaction = CatalogTransaction(session, hold, at: time)
        let value = try body(transaction)
        let (changes, undescribed) = (transaction.changes, transaction.recordingsToDescribe)
        try recordDescriptions(transaction)
        let isNoted = try trail?.note(changes, at: time, transaction) ?? false
        try feed?.announce(changes, in: session)
        hold.note("COMMIT")
        return ((value, changes, undescribed), isNoted)
      }
    } catch .outcomeUnknown {
      // It may have been committed, or be later.
      trail?.noteCommit()
      feed?.doubtOwn()
      changes.addToAll()
      throw .outcomeUnknown
    }
    if isNoted { trail?.noteCommit() }
    // Before `writes`, so that a reader that sees the new count also sees which rows have changed.
    changes.add(committed.1)
    return committed
  }

  /// Increases with every write, before the writing call returns. What was read after getting this number is current as
  /// long as the number stays the same.
  ///
  /// If other processes share the catalog, their writes count when they are heard of, usually within milliseconds.
  /// While that may take more than 5 s, the number is never the same twice.
  package var changeCount: UInt64 {
    if hearsTooLittle { return countUnheard() }
    return writes.load(ordering: .sequentiallyConsistent)
  }

  /// The number of writes to one recording's row, although writes to others may also increase it. O(1), no query.
  package func changeCount(of id: RecordingID) -> UInt64 {
    hearsTooLittle ? changes.grown(id) : changes[id]
  }

  private var hearsTooLittle: Bool { feed?.isSilent ?? false }

  private func countUnheard() -> UInt64 { writes.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue }
}

// MARK: - Other processes

extension Catalog {
  /// Whether other processes may use the catalog at the same time.
  package var isShared: Bool { feed != nil || holder.terms != nil }

  /// Seconds since the feed of other processes' changes last proved that it delivers; nil without a feed, or while it
  /// is interrupted.
  package var secondsSinceHeard: Double? { feed?.secondsSinceHeard }

  /// From now on, hears what other processes change: counts it, calls the action of `whenChanged`, then `hear`. Calls
  /// `onInterruption` with a reason when the feed is interrupted. Call this once. Does nothing without a feed.
  package func listenToOthers(
    _ hear: @escaping @Sendable (HeardFromOthers) -> Void, onInterruption: @escaping @Sendable (String) -> Void
  ) {
    feed?.listen(
      { [weak self] heard in
        guard let self else { return }
        switch heard {
        case .changes(let changed):
          changes.add(changed)
          _ = countUnheard()
          tell(changed)
        case .anything:
          changes.addToAll()
          _ = countUnheard()
        case .progress: break
        }
        hear(heard)
      }, onInterruption: onInterruption)
  }

  /// Ends the calls of `listenToOthers`.
  package func stopListeningToOthers() { feed?.stop() }

  /// Tells the other processes how far an attempt has come. Blocks. Does nothing without a feed.
  package func tellOthers(_ progress: AttemptProgress) throws(StorageError) { try feed?.announce(progress) }
}
