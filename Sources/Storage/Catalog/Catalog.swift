import Dispatch
import GRDB
import Synchronization

/// The recordings and jobs of a data directory, in SQLite. Safe from any thread.
///
/// Every call blocks, on the disk and on other writers (5 s at the most): worker queues only, never an event loop.
/// Every call is one transaction, and what a writing call has done when it returns survives a power cut.
/// The closures given to it run inside the transaction: they must be brief and must not call the catalogue.
package final class Catalog: Sendable {
  let pool: DatabasePool
  private let file: CatalogFile
  private let changes: ChangedRecordings
  private let descriptions = Mutex<DescriptionKeeper?>(nil)
  private let writes = Atomic<UInt64>(0)
  private let reads = Atomic<UInt64>(0)
  private let isDamaged = Atomic(false)
  /// What the start found, for whoever asks how the service is.
  package let startReport = Mutex(SweepReport())

  /// Opens the catalogue in the file `path`, makes it where it is missing, and brings an older one up to date.
  ///
  /// Throws `.newerSchema` for one that a newer version of the program has written, `.damagedCatalog` for one that
  /// can't be read.
  package convenience init(path: String) throws(StorageError) {
    try self.init(path: path, migrator: Schema.migrator)
  }

  init(path: String, migrator: DatabaseMigrator) throws(StorageError) {
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

  /// The catalog that `pool` has open for reading: it is left as it is, whatever its version.
  init(reading pool: DatabasePool, path: String) {
    self.pool = pool
    file = CatalogFile(path: path, makesPrivate: false)
    changes = ChangedRecordings()
  }

  /// Keeps the description of every recording in its folder in step with its row, from now on. Set once, before the
  /// first change. Calls `onFailure` if a description can't be written; the row is durable regardless.
  package func keepDescriptions(
    in store: MediaStore, onFailure: @escaping @Sendable (RecordingID, StorageError) -> Void
  ) {
    descriptions.withLock { $0 = DescriptionKeeper(store: store, onFailure: onFailure) }
  }

  /// Writes the description of a recording into its folder, as the catalog has it now.
  package func describe(_ id: RecordingID) {
    // By the connection that writes: it sees what it has committed, whatever has become of the files that connections
    // share.
    descriptions.withLock { $0 }?.describe(id) {
      try self.pool.writeWithoutTransaction { try Self.recording(id, $0) }
    }
  }

  /// Moves what the log holds into the catalog's own file and empties the log, so that the file alone is the whole
  /// catalog and can be copied. Others may go on reading.
  package func checkpoint() throws(StorageError) {
    do {
      try file.check()
      try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    } catch {
      throw StorageError(error)
    }
  }

  /// The same, and closes the catalog. No call may be under way or follow.
  package func close() throws(StorageError) {
    try checkpoint()
    do { try pool.close() } catch { throw StorageError(error) }
  }

  private static func open(_ path: String) throws -> DatabasePool {
    var configuration = Configuration()
    configuration.label = "catalog"
    configuration.foreignKeysEnabled = true
    configuration.busyMode = .timeout(5)
    configuration.prepareDatabase { $0.add(function: NameSearch.function) }
    let pool = try DatabasePool(path: path, configuration: configuration)
    // NORMAL, which GRDB sets for WAL, may lose the last commits in a power cut: a 201 would have been a lie. Only the
    // pool's one writer commits, and GRDB has set its own when the pool is there, so this can't be in prepareDatabase.
    try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    return pool
  }

  /// Writes a row, to see that the catalogue can: throws what stands in the way, `.diskFull` for one.
  package func check() throws(StorageError) {
    try checkUsable()
    try file.check()
    // Not by way of `write`: nothing that anybody reads has changed.
    do {
      try pool.write { db in
        // Counted, because SQLite writes nothing for a row that an update leaves as it was.
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
    do { return try pool.read(body) } catch { throw noting(error) }
  }

  /// Throws where the catalog can take no row: it is damaged, or was removed or replaced. Costs two system calls.
  package func checkFile() throws(StorageError) {
    try checkUsable()
    try file.check()
  }

  /// Once SQLite has met damage nothing more is read or written: every answer could be wrong, and every commit could
  /// spread it.
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

  /// How many reading calls there have been.
  package var readCount: UInt64 { reads.load(ordering: .relaxed) }

  func write<Value>(_ body: (Database) throws -> Value) throws(StorageError) -> Value {
    try checkFile()
    try descriptions.withLock { $0 }?.store.checkClaim()
    let (value, changed) = try commit(body)
    for id in changed { describe(id) }
    return value
  }

  /// Runs `body` in a transaction; what it returns, and the recordings that it changed.
  private func commit<Value>(
    _ body: (Database) throws -> Value
  ) throws(StorageError) -> (Value, [RecordingID]) {
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

  /// Grows with every write, before the call that made it returns: what was read after the count was taken is current
  /// for as long as the count stays.
  package var changeCount: UInt64 { writes.load(ordering: .sequentiallyConsistent) }
}
