import GRDB
import Synchronization

/// The recordings and jobs of a data directory, in SQLite. Safe from any thread.
///
/// Every call blocks, on the disk and on other writers (5 s at the most): worker queues only, never an event loop.
/// Every call is one transaction, and what a writing call has done when it returns survives a power cut.
/// The closures given to it run inside the transaction: they must be brief and must not call the catalogue.
public final class Catalog: Sendable {
  let pool: DatabasePool
  private let writes = Atomic<UInt64>(0)
  private let reads = Atomic<UInt64>(0)

  /// Opens the catalogue in the file `path`, makes it where it is missing, and brings an older one up to date.
  ///
  /// Throws `.newerSchema` for one that a newer version of the program has written.
  public convenience init(path: String) throws(StorageError) {
    try self.init(path: path, migrator: Schema.migrator)
  }

  init(path: String, migrator: DatabaseMigrator) throws(StorageError) {
    do {
      pool = try Self.open(path)
      if try pool.read(migrator.hasBeenSuperseded) { throw StorageError.newerSchema(path: path) }
      try migrator.migrate(pool)
    } catch {
      throw StorageError(error)
    }
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
  public func check() throws(StorageError) {
    // Not by way of `write`: nothing that anybody reads has changed.
    do {
      try pool.write { db in
        // Counted, because SQLite writes nothing for a row that an update leaves as it was.
        try db.cachedStatement(
          sql: "INSERT INTO heartbeat (id, beats) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET beats = beats + 1"
        ).execute()
      }
    } catch {
      throw StorageError(error)
    }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws(StorageError) -> Value {
    reads.wrappingAdd(1, ordering: .relaxed)
    do { return try pool.read(body) } catch { throw StorageError(error) }
  }

  /// How many reading calls there have been.
  public var readCount: UInt64 { reads.load(ordering: .relaxed) }

  func write<Value>(_ body: (Database) throws -> Value) throws(StorageError) -> Value {
    defer { writes.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    do { return try pool.write(body) } catch { throw StorageError(error) }
  }

  /// Grows with every write, before the call that made it returns: what was read after the count was taken is current
  /// for as long as the count stays.
  public var changeCount: UInt64 { writes.load(ordering: .sequentiallyConsistent) }
}
