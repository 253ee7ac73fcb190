import GRDB
import Synchronization

/// A catalog in an SQLite file, through GRDB's pool: one writing connection, and readers that see snapshots.
///
/// Blocks up to 5 s on another process that writes, or as long as the creator says.
final class SQLiteEngine: SQLEngine {
  let pool: DatabasePool
  private let file: CatalogFile
  private let isDamaged = Atomic(false)

  var dialect: SQLDialect { .sqlite }

  /// Opens the catalog at `path`: creates it if missing, and migrates an older one.
  ///
  /// Throws `.newerSchema` or `.unreleasedSchema` if another version of the program wrote it, and `.damagedCatalog` if
  /// it can't be read.
  init(
    path: String, migrator: DatabaseMigrator = Schema.migrator, patienceSeconds: Double = 5
  ) throws(StorageError) {
    do {
      pool = try Self.open(path, patienceSeconds: patienceSeconds)
      try pool.read { try Schema.check($0, path: path, migrator: migrator) }
      try migrator.migrate(pool)
      try pool.read { try Self.checkColumns($0, migrator: migrator) }
    } catch {
      throw StorageError(error).naming(path)
    }
    file = CatalogFile(path: path)
  }

  /// Wraps a catalog that `pool` has opened for reading. It isn't modified, whatever its version.
  init(reading pool: DatabasePool, path: String) {
    self.pool = pool
    file = CatalogFile(path: path, makesPrivate: false)
  }

  private static func open(_ path: String, patienceSeconds: Double) throws -> DatabasePool {
    var configuration = Configuration()
    configuration.label = "catalog"
    configuration.foreignKeysEnabled = true
    configuration.busyMode = .timeout(patienceSeconds)
    configuration.prepareDatabase { $0.add(function: NameSearch.number) }
    let pool = try DatabasePool(path: path, configuration: configuration)
    // NORMAL, GRDB's choice for WAL, may lose the last commits in a power failure, which would make a 201 response a
    // lie. Only the pool's single writer commits. GRDB overrides the setting after prepareDatabase, so set it here.
    try pool.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA synchronous = FULL")
      // Overwrites deleted content with zeros; see `eraseTraces`.
      try $0.execute(sql: "PRAGMA secure_delete = ON")
    }
    return pool
  }

  // MARK: Transactions

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    try checkIntact()
    do { return try pool.read { try body(SQLiteSession($0)) } } catch { throw noting(error) }
  }

  func readLatest<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    // The writing connection sees its own commits without the index of the log.
    do { return try pool.writeWithoutTransaction { try body(SQLiteSession($0)) } } catch { throw noting(error) }
  }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    try checkUsable()
    do {
      return try pool.writeWithoutTransaction { db in
        var value: Value?
        try db.inTransaction(.immediate) {
          value = try body(SQLiteSession(db))
          return .commit
        }
        guard let value else { preconditionFailure("a transaction that was committed has run its body") }
        return value
      }
    } catch {
      throw noting(error)
    }
  }

  // MARK: Condition

  func checkUsable() throws(StorageError) {
    try checkIntact()
    try file.check()
  }

  /// Throws if SQLite has found damage since the start. After that, nothing is read or written, because any result
  /// could be wrong, and any commit could spread the damage.
  private func checkIntact() throws(StorageError) {
    guard !isDamaged.load(ordering: .relaxed) else {
      throw .damagedCatalog(path: file.path, detail: "damage was found while the service ran")
    }
  }

  private func noting(_ error: any Error) -> StorageError {
    let error = StorageError(error).naming(file.path)
    if case .damagedCatalog = error { isDamaged.store(true, ordering: .relaxed) }
    return error
  }

  // MARK: Maintenance

  /// Rewrites the whole index of names, at most `pagesAtOnce` of its pages in each transaction. Throws if another
  /// process reads the catalog meanwhile.
  func eraseTraces(pagesAtOnce: Int) throws(StorageError) {
    // https://sqlite.org/fts5.html#the_merge_command: a negative number begins to merge all parts, a positive one goes
    // on, and there is nothing left to do if fewer than two rows change.
    var pages = -pagesAtOnce
    while try mergeNames(pages) { pages = pagesAtOnce }
    try checkpoint()
  }

  /// Returns whether there may be more to merge.
  private func mergeNames(_ pages: Int) throws(StorageError) -> Bool {
    try checkUsable()
    do {
      return try pool.write { db in
        let before = db.totalChangesCount
        try db.execute(
          sql: "INSERT INTO recording_names (recording_names, rank) VALUES ('merge', ?)", arguments: [pages])
        return db.totalChangesCount - before >= 2
      }
    } catch {
      throw noting(error)
    }
  }

  /// Moves the contents of the log into the catalog's main file and empties the log, so that this file alone is the
  /// whole catalog and can be copied. Others may keep reading.
  func checkpoint() throws(StorageError) {
    do {
      try file.check()
      try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    } catch {
      throw StorageError(error)
    }
  }

  func releaseMemory() {
    pool.releaseMemoryEventually()
    // The writing connection does it before this.
    pool.writeWithoutTransaction { _ in }
  }

  func close() throws(StorageError) {
    try checkpoint()
    do { try pool.close() } catch { throw StorageError(error) }
  }
}
