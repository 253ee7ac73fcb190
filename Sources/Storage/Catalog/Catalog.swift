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
  private let descriptions = Mutex<DescriptionKeeper?>(nil)
  private let onChange = Mutex<Listener?>(nil)
  private let writes = Atomic<UInt64>(0)
  private let reads = Atomic<UInt64>(0)
  /// Wraps a closure, because each access to one that is a mutex's value itself would wrap it in another closure, so
  /// that calling it would take longer and longer.
  private struct Listener {
    let call: @Sendable (CatalogChanges) -> Void
  }

  /// How long reading and writing calls take, including their wait for other writers.
  package let readTimes = Histogram.ofSeconds()
  /// The same for writing calls.
  package let writeTimes = Histogram.ofSeconds()
  /// What startup found, for status queries.
  package let startReport = Mutex(SweepReport())

  /// Opens the catalog in the SQLite file at `path`: creates it if missing, and migrates an older one.
  ///
  /// Throws `.newerSchema` if a newer version of the program wrote it, and `.damagedCatalog` if it can't be read.
  package convenience init(path: String, holder: LeaseHolder = LeaseHolder()) throws(StorageError) {
    self.init(engine: try SQLiteEngine(path: path), holder: holder)
  }

  /// Creates a catalog in the database of an engine, whose tables are up to date.
  package init(engine: any SQLEngine, holder: LeaseHolder = LeaseHolder()) {
    (self.engine, self.holder) = (engine, holder)
  }

  /// From now on, keeps the description in every recording's folder in sync with its row. Call it once, before the
  /// first change. Calls `onFailure` if a description can't be written; the row is durable regardless.
  package func keepDescriptions(
    in store: MediaStore, onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void
  ) {
    descriptions.withLock { $0 = DescriptionKeeper(store: store, onFailure: onFailure) }
  }

  /// From now on, calls `action` after every commit with what it changed, when readers already see it. `action` must be
  /// brief. Call this once, before the first change.
  package func whenChanged(_ action: @escaping @Sendable (CatalogChanges) -> Void) {
    onChange.withLock { $0 = Listener(call: action) }
  }

  /// Writes the current description of a recording into its folder.
  package func describe(_ id: RecordingID) {
    descriptions.withLock { $0 }?.describe(id) {
      try self.engine.readLatest { try Self.recording(id, CatalogTransaction($0)) }
    }
  }

  /// Makes the catalog's main file complete, so that it can be copied by itself. Others may keep reading.
  package func checkpoint() throws(StorageError) { try engine.checkpoint() }

  /// Calls `checkpoint` and closes the catalog. No other call may be in progress or follow.
  package func close() throws(StorageError) { try engine.close() }

  /// Writes a row to check that the catalog is writable. Throws the cause if not, such as `.diskFull`.
  package func check() throws(StorageError) {
    // Bypasses the catalog's `write`, because it changes nothing that readers see.
    _ = try engine.write {
      // Counts up, because SQLite doesn't write an update that leaves a row unchanged.
      try $0.run(
        """
        INSERT INTO heartbeat (id, beats) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET beats = heartbeat.beats + 1
        """)
    }
  }

  func read<Value>(_ body: (CatalogTransaction) throws -> Value) throws(StorageError) -> Value {
    reads.wrappingAdd(1, ordering: .relaxed)
    return try readTimes.time { () throws(StorageError) in try engine.read { try body(CatalogTransaction($0)) } }
  }

  /// Throws if the catalog can't accept writes because it is damaged, removed, or replaced. Costs two system calls.
  package func checkFile() throws(StorageError) { try engine.checkUsable() }

  /// Number of reading calls so far.
  package var readCount: UInt64 { reads.load(ordering: .relaxed) }

  @discardableResult
  func write<Value: Sendable>(
    _ body: @Sendable (CatalogTransaction) throws -> Value
  ) throws(StorageError) -> Value {
    try descriptions.withLock { $0 }?.store.checkClaim()
    let (value, changed) = try writeTimes.time { () throws(StorageError) in try commit(body) }
    for changed in changed.recordings { describe(changed.id) }
    onChange.withLock { $0 }?.call(changed)
    return value
  }

  /// Runs `body` in a transaction. Returns its result and what it changed.
  private func commit<Value: Sendable>(
    _ body: @Sendable (CatalogTransaction) throws -> Value
  ) throws(StorageError) -> (Value, CatalogChanges) {
    defer { writes.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    let committed = try engine.write { session in
      let transaction = CatalogTransaction(session)
      return (try body(transaction), transaction.changes)
    }
    // Before `writes`, so that a reader that sees the new count also sees which rows have changed.
    changes.add(committed.1)
    return committed
  }

  /// Increases with every write, before the writing call returns. What was read after getting this number is current as
  /// long as the number stays the same.
  package var changeCount: UInt64 { writes.load(ordering: .sequentiallyConsistent) }

  /// The same for writes to one recording's row, although writes to others may also increase it. O(1), no query.
  package func changeCount(of id: RecordingID) -> UInt64 { changes[id] }
}
