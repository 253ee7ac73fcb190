import Storage
import Synchronization

/// Documents made from rows and live jobs, by id. At most one reader at a time works on an id, and all callers that come
/// meanwhile share the next reading: what a step of a job costs does not grow with the number of clients that wait.
final class SharedDocuments<Key: Hashable & Sendable, Row: Sendable, Value: Sendable>: Sendable {
  private typealias Caller = CheckedContinuation<Result<Value?, any Error>, Never>

  /// The catalog's writes and the live jobs' steps, whatever they were about: coarse, but every change counts.
  private struct Version: Equatable {
    var writes: UInt64
    var steps: UInt64
  }

  private let rows: Cache<Key, UInt64, Row>
  private let values: Cache<Key, Version, Value>
  /// Those who wait, by what is being read: an id is in here for as long as somebody reads it.
  private let callers = Mutex<[Key: [Caller]]>([:])
  private let work: WorkQueue
  private let liveJob: @Sendable (Key) -> LiveJob?
  private let read: @Sendable (Key) throws -> Row?
  private let make: @Sendable (Row, LiveJob?) throws -> Value

  /// `limit`: documents kept. They have 1 to 3 KB: some MB at most.
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

  /// The current document if it is kept.
  func known(_ key: Key) -> Value? { values[key] }

  /// The current document; nil if there is no such row. Throws what the catalog throws.
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

  /// Reads for all who wait, and again for those who came meanwhile.
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

  /// The live job first, then the row: one that ends in between has its row finished before it leaves the live ones, so
  /// nobody sees a running row without its progress.
  private func current(_ key: Key) throws -> Value? {
    if let known = known(key) { return known }
    let version = values.version(key)
    let job = liveJob(key)
    guard let row = try row(key) else { return nil }
    let value = try make(row, job)
    values.keep(value, for: key, version: version)
    return value
  }

  /// A job's step changes its document but not its row, which is read once for all steps.
  private func row(_ key: Key) throws -> Row? {
    if let known = rows[key] { return known }
    let version = rows.version(key)
    guard let row = try read(key) else { return nil }
    rows.keep(row, for: key, version: version)
    return row
  }
}
