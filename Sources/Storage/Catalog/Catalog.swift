import Dispatch
import GRDB
import Synchronization
import Terms

/// The recordings and jobs of a data directory, in SQLite. Thread-safe.
///
/// Every call blocks on the disk and up to 5 s on other writers; call it on a worker queue, never on an event loop.
/// Every call is one transaction. Committed writes survive a power failure. Closures passed to a call run inside the
/// transaction: they must be brief and must not call the catalog.
package final class Catalog: Sendable {
  let pool: DatabasePool
  /// The process that opened the catalog, as the owner of the attempts that it begins.
  package let holder: LeaseHolder
  private let file: CatalogFile
  let changes: ChangedRecordings
  private let descriptions = Mutex<DescriptionKeeper?>(nil)
  private let onChange = Mutex<(@Sendable (CatalogChanges) -> Void)?>(nil)
  private let writes = Atomic<UInt64>(0)
  private let reads = Atomic<UInt64>(0)
  private let isDamaged = Atomic(false)
  /// How long reading and writing calls take, including their wait for other writers.
  package let readTimes = Histogram.ofSeconds()
  /// The same for writing calls.
  package let writeTimes = Histogram.ofSeconds()
  /// What startup found, for status queries.
  package let startReport = Mutex(SweepReport())

  /// Opens the catalog at `path`: creates it if missing, and migrates an older one.
  ///
  /// Throws `.newerSchema` if a newer version of the program wrote it, and `.damagedCatalog` if it can't be read.
  package convenience init(path: String, holder: LeaseHolder = LeaseHolder()) throws(StorageError) {
    try self.init(path: path, migrator: Schema.migrator, holder: holder)
  }

  init(path: String, migrator: DatabaseMigrator, holder: LeaseHolder = LeaseHolder()) throws(StorageError) {
    self.holder = holder
    do {
      pool = try Self.open(path)
      if try pool.read(migrator.hasBeenSuperseded) { throw StorageError.newerSchema(path: path) }
      try migrator.migrate(pool)
      try pool.read { try Self.checkColumns($0, migrator: migrator) }
    } catch {
      throw StorageError(error).naming(path)
    }
    file = CatalogFile(path: path)
    changes = ChangedRecordings()
    pool.add(transactionObserver: changes)
  }

  /// Wraps a catalog that `pool` has opened for reading. It isn't modified, whatever its version.
  init(reading pool: DatabasePool, path: String) {
    self.pool = pool
    holder = LeaseHolder()
    file = CatalogFile(path: path, makesPrivate: false)
    changes = ChangedRecordings()
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
    onChange.withLock { $0 = action }
  }

  /// Writes the current description of a recording into its folder.
  package func describe(_ id: RecordingID) {
    // Uses the writing connection, which sees its own commits even if the files shared between connections are damaged.
    descriptions.withLock { $0 }?.describe(id) {
      try self.pool.writeWithoutTransaction { try Self.recording(id, $0) }
    }
  }

  /// Moves the contents of the log into the catalog's main file and empties the log, so that this file alone is the
  /// whole catalog and can be copied. Others may keep reading.
  package func checkpoint() throws(StorageError) {
    do {
      try file.check()
      try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    } catch {
      throw StorageError(error)
    }
  }

  /// Calls `checkpoint` and closes the catalog. No other call may be in progress or follow.
  package func close() throws(StorageError) {
    try checkpoint()
    do { try pool.close() } catch { throw StorageError(error) }
  }

  private static func open(_ path: String) throws -> DatabasePool {
    var configuration = Configuration()
    configuration.label = "catalog"
    configuration.foreignKeysEnabled = true
    configuration.busyMode = .timeout(5)
    configuration.prepareDatabase { $0.add(function: NameSearch.number) }
    let pool = try DatabasePool(path: path, configuration: configuration)
    // NORMAL, GRDB's choice for WAL, may lose the last commits in a power failure, which would make a 201 response a
    // lie. Only the pool's single writer commits. GRDB overrides the setting after prepareDatabase, so set it here.
    try pool.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA synchronous = FULL")
      // Overwrites what is deleted with zeros; see `eraseTraces`.
      try $0.execute(sql: "PRAGMA secure_delete = ON")
    }
    return pool
  }

  /// Writes a row to check that the catalog is writable. Throws the cause if not, such as `.diskFull`.
  package func check() throws(StorageError) {
    try checkUsable()
    try file.check()
    // Bypasses `write`, because it changes nothing that readers see.
    do {
      try pool.write { db in
        // Counts up, because SQLite doesn't write an update that leaves a row unchanged.
        try db.cachedStatement(
          sql: "INSERT INTO heartbeat (id, beats) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET beats = beats + 1"
        ).execute()
      }
    } catch {
      throw noting(error)
    }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws(StorageError) -> Value {
    try checkUsable()
    reads.wrappingAdd(1, ordering: .relaxed)
    do { return try readTimes.time { try pool.read(body) } } catch { throw noting(error) }
  }

  /// Throws if the catalog can't accept writes because it is damaged, removed, or replaced. Costs two system calls.
  package func checkFile() throws(StorageError) {
    try checkUsable()
    try file.check()
  }

  /// Throws if SQLite has found damage since the start. After that, nothing is read or written, because any result
  /// could be wrong, and any commit could spread the damage.
  private func checkUsable() throws(StorageError) {
    guard !isDamaged.load(ordering: .relaxed) else {
      throw .damagedCatalog(path: file.path, detail: "damage was found while the service ran")
    }
  }

  private func noting(_ error: any Error) -> StorageError {
    let error = StorageError(error).naming(file.path)
    if case .damagedCatalog = error { isDamaged.store(true, ordering: .relaxed) }
    return error
  }

  /// Number of reading calls so far.
  package var readCount: UInt64 { reads.load(ordering: .relaxed) }

  func write<Value>(_ body: (Database) throws -> Value) throws(StorageError) -> Value {
    try checkFile()
    try descriptions.withLock { $0 }?.store.checkClaim()
    let (value, changed) = try writeTimes.time { () throws(StorageError) in try commit(body) }
    for changed in changed.recordings { describe(changed.id) }
    onChange.withLock { $0 }?(changed)
    return value
  }

  /// Runs `body` in a transaction. Returns its result and what it changed.
  private func commit<Value>(
    _ body: (Database) throws -> Value
  ) throws(StorageError) -> (Value, CatalogChanges) {
    defer { writes.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    do {
      return try pool.writeWithoutTransaction { db in
        var value: Value?
        try db.inTransaction(.immediate) {
          value = try body(db)
          return .commit
        }
        guard let value else { preconditionFailure("a transaction that was committed has run its body") }
        return (value, changes.take(db))
      }
    } catch {
      throw noting(error)
    }
  }

  /// Increases with every write, before the writing call returns. What was read after getting this number is current as
  /// long as the number stays the same.
  package var changeCount: UInt64 { writes.load(ordering: .sequentiallyConsistent) }

  /// The same for writes to one recording's row, although writes to others may also increase it. O(1), no query.
  package func changeCount(of id: RecordingID) -> UInt64 { changes.changeCount(of: id) }
}
