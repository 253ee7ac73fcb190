import Jobs
import Storage
import Synchronization

/// Documents made from rows and live jobs, by id. Only one read per id runs at a time; callers that arrive meanwhile
/// wait for the next read and share its result. So the cost of a job's step doesn't grow with the number of waiting
/// clients.
final class SharedDocuments<Key: TenantKey, Row: Sendable, Value: Sendable>: Sendable {
  private typealias Caller = CheckedContinuation<Result<Value?, any Error>, Never>

  /// Counts of all the catalog's writes and all live jobs' steps. That's coarse, but no change is missed.
  private struct Version: Equatable {
    var writes: UInt64
    var steps: UInt64
  }

  private let rows: Cache<Key, UInt64, Row>
  private let values: Cache<Key, Version, Value>
  /// The waiting callers of each id that is being read. An id stays here as long as its read runs.
  private let callers = Mutex<[Key: [Caller]]>([:])
  private let work: WorkQueue
  private let liveJob: @Sendable (Key) -> LiveJob?
  private let read: @Sendable (Key) throws -> Row?
  private let make: @Sendable (Row, LiveJob?) throws -> Value

  /// `limit` is the number of cached documents. Each takes 1 to 3 KB, so the default is a few MB at most.
  init(
    catalog: Catalog, live: LiveJobs, work: WorkQueue, limit: Int = 1024,
    liveJob: @escaping @Sendable (Key) -> LiveJob?, read: @escaping @Sendable (Key) throws -> Row?,
    make: @escaping @Sendable (Row, LiveJob?) throws -> Value
  ) {
    rows = Cache(limit: limit) { _ in catalog.changeCount }
    values = Cache(limit: limit) { _ in Version(writes: catalog.changeCount, steps: live.changeCount) }
    self.work = work
    self.liveJob = liveJob
    self.read = read
    self.make = make
  }

  /// Returns the current document if it's cached.
  func known(_ key: Key) -> Value? { values[key] }

  /// Returns the current value, or nil if there is no such row. Throws what the catalog throws.
  func value(_ key: Key) async throws -> Value? {
    if let known = known(key) { return known }
    let result: Result<Value?, any Error> = await withCheckedContinuation { caller in
      let isFirst = callers.withLock { callers in
        defer { callers[key, default: []].append(caller) }
        return callers[key] == nil
      }
      if isFirst { work.start { [self] in serve(key) } }
    }
    return try result.get()
  }

  /// Reads for all waiting callers, then again for those that arrived meanwhile.
  private func serve(_ key: Key) {
    while let callers = nextCallers(key) {
      let result = Result { try current(key) }
      for caller in callers { caller.resume(returning: result) }
    }
  }

  private func nextCallers(_ key: Key) -> [Caller]? {
    callers.withLock { callers in
      guard let waiting = callers[key], !waiting.isEmpty else {
        callers[key] = nil
        return nil
      }
      callers[key] = []
      return waiting
    }
  }

  /// Reads the live job first, then the row. If the job ends in between, its row is finished before it leaves the live
  /// jobs, so no caller sees a running row without progress.
  private func current(_ key: Key) throws -> Value? {
    if let known = known(key) { return known }
    let version = values.version(key)
    let job = liveJob(key)
    guard let row = try row(key) else { return nil }
    let value = try make(row, job)
    values.keep(value, for: key, version: version)
    return value
  }

  /// Returns the row. A step changes a job's document but not its row, so the row is read only once for all steps.
  private func row(_ key: Key) throws -> Row? {
    if let known = rows[key] { return known }
    let version = rows.version(key)
    guard let row = try read(key) else { return nil }
    rows.keep(row, for: key, version: version)
    return row
  }
}
