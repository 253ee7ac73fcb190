import Storage
import Synchronization

/// What is made of rows and live jobs, by id. At any time one reader at the most is at work on an id; whoever asks
/// meanwhile waits for the next reading, which all of them share: what a step of a job costs does not grow with the
/// number of those who wait for it.
final class SharedDocuments<Key: Hashable & Sendable, Row: Sendable, Value: Sendable>: Sendable {
  /// Both counters, read before what they count: a value never claims to be newer than it is.
  private struct Stamp: Equatable {
    var catalog: UInt64
    var live: UInt64
  }

  private struct Entry {
    var stamp: Stamp
    var row: Row
    var value: Value
  }

  private typealias Caller = CheckedContinuation<Result<Value?, any Error>, Never>

  private struct State {
    var entries: [Key: Entry] = [:]
    /// Those who wait, by what is being read: an id is in here for as long as somebody reads it.
    var callers: [Key: [Caller]] = [:]
  }

  private let catalog: Catalog
  private let live: LiveJobs
  private let work: WorkQueue
  private let liveJob: @Sendable (Key) -> LiveJob?
  private let read: @Sendable (Key) throws -> Row?
  private let make: @Sendable (Row, LiveJob?) throws -> Value
  private let state = Mutex(State())

  /// Documents have 1 to 3 KB: some MB at the most.
  private static var limit: Int { 1024 }

  init(
    catalog: Catalog, live: LiveJobs, work: WorkQueue, liveJob: @escaping @Sendable (Key) -> LiveJob?,
    read: @escaping @Sendable (Key) throws -> Row?, make: @escaping @Sendable (Row, LiveJob?) throws -> Value
  ) {
    self.catalog = catalog
    self.live = live
    self.work = work
    self.liveJob = liveJob
    self.read = read
    self.make = make
  }

  /// What holds now, where it was made before and nothing has changed since.
  func known(_ key: Key) -> Value? {
    let now = stamp
    return state.withLock { state in
      guard let entry = state.entries[key], entry.stamp == now else { return nil }
      return entry.value
    }
  }

  /// What holds now; nil where there is no such row. Throws what the catalogue throws.
  func value(_ key: Key) async throws -> Value? {
    if let known = known(key) { return known }
    let result: Result<Value?, any Error> = await withCheckedContinuation { caller in
      let isFirst = state.withLock { state in
        defer { state.callers[key, default: []].append(caller) }
        return state.callers[key] == nil
      }
      if isFirst { work.start { [self] in serve(key) } }
    }
    return try result.get()
  }

  private var stamp: Stamp { Stamp(catalog: catalog.changeCount, live: live.changeCount) }

  /// Reads for all who wait, and again for those who came meanwhile.
  private func serve(_ key: Key) {
    while let callers = nextCallers(key) {
      let result = Result { try current(key) }
      for caller in callers { caller.resume(returning: result) }
    }
  }

  private func nextCallers(_ key: Key) -> [Caller]? {
    state.withLock { state in
      guard let callers = state.callers[key], !callers.isEmpty else {
        state.callers[key] = nil
        return nil
      }
      state.callers[key] = []
      return callers
    }
  }

  /// The live job first, then the row: one that ends in between has its row finished before it leaves the live ones, so
  /// nobody sees a running row without its progress. If no write has happened since, the cached row is current.
  private func current(_ key: Key) throws -> Value? {
    if let known = known(key) { return known }
    let steps = live.changeCount
    let job = liveJob(key)
    let writes = catalog.changeCount
    let entry = state.withLock { $0.entries[key] }
    let row = entry?.stamp.catalog == writes ? entry?.row : try read(key)
    let value = try row.map { try make($0, job) }
    state.withLock { state in
      if state.entries.count >= Self.limit { state.entries.removeAll(keepingCapacity: true) }
      guard let row, let value else { return state.entries[key] = nil }
      state.entries[key] = Entry(stamp: Stamp(catalog: writes, live: steps), row: row, value: value)
    }
    return value
  }
}
