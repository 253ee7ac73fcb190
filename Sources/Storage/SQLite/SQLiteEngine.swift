import CSQLite
import Dispatch
import Synchronization

/// A catalog in an SQLite file: one connection that writes, and others that read snapshots.
///
/// Blocks up to 5 s on another process that writes, or as long as the creator says.
final class SQLiteEngine: SQLEngine {
  private let writer: SQLiteConnection
  /// Runs what uses the writer.
  private let writing = DispatchQueue(label: "catalog")
  private let readers = Mutex(Readers())
  private let readerPlaces = DispatchSemaphore(value: 5)
  private let file: CatalogFile
  private let isDamaged = Atomic(false)

  private struct Readers {
    var idle: [SQLiteConnection] = []
    /// Changes when those in use are to be closed, too; nil once the engine is closed.
    var generation: Int? = 0
  }

  var dialect: SQLDialect { .sqlite }

  /// Opens the catalog at `path`: creates it if missing, and migrates an older one.
  ///
  /// Throws `.newerSchema` or `.unreleasedSchema` if another version of the program wrote it, and `.damagedCatalog` if
  /// it can't be read.
  init(
    path: String, migrations: [String] = Schema.migrations, patienceSeconds: Double = 5
  ) throws(StorageError) {
    do throws(StorageError) {
      // FULL, because in WAL mode NORMAL may lose the last commits in a power failure, which would make a 201 response
      // a lie. secure_delete overwrites deleted content with zeros; see `eraseTraces`.
      writer = try SQLiteConnection(
        path, patienceSeconds: patienceSeconds, settings: "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
      let mode = try writer.first("PRAGMA journal_mode = WAL", as: String.self)
      guard mode == "wal" else { throw .database(code: SQLITE_ERROR, message: "the journal mode is \(mode ?? "")") }
      try Schema.migrate(writer, path: path, migrations)
    } catch {
      throw error.naming(path)
    }
    file = CatalogFile(path: path)
  }

  /// Opens a catalog for reading. It isn't modified, whatever its version.
  init(reading path: String) throws(StorageError) {
    writer = try SQLiteConnection(path, isReadOnly: true, patienceSeconds: 5)
    file = CatalogFile(path: path, makesPrivate: false)
  }

  /// The writer is closed last, because only it can move the log into the main file.
  deinit { closeReaders() }

  // MARK: Transactions

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    try checkIntact()
    readerPlaces.wait()
    defer { readerPlaces.signal() }
    do {
      let (idle, generation) = readers.withLock { ($0.idle.popLast(), $0.generation) }
      guard generation != nil else {
        throw StorageError.database(code: SQLITE_MISUSE, message: "the catalog is closed")
      }
      // Readers wait for nothing but the recovery of a log, and other processes' last connections.
      let reader = try idle ?? SQLiteConnection(file.path, isReadOnly: true, patienceSeconds: 10)
      defer { readers.withLock { if $0.generation == generation { $0.idle.append(reader) } } }
      return try reader.transaction("BEGIN") { try body(reader) }
    } catch {
      throw noting(error)
    }
  }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    try checkUsable()
    return try withWriter { writer in try writer.transaction { try body(writer) } }
  }

  /// Runs `body` with the writing connection, outside of a transaction.
  func withWriter<Value>(_ body: (SQLiteConnection) throws -> Value) throws(StorageError) -> Value {
    do { return try writing.sync { try body(writer) } } catch { throw noting(error) }
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
    try write { session in
      let changes = "SELECT total_changes()"
      let before = try session.first(changes, as: Int.self) ?? 0
      try session.run("INSERT INTO recording_names (recording_names, rank) VALUES ('merge', ?)", [pages])
      return try (session.first(changes, as: Int.self) ?? 0) - before >= 2
    }
  }

  /// Moves the contents of the log into the catalog's main file and empties the log, so that this file alone is the
  /// whole catalog and can be copied. Others may keep reading.
  func checkpoint() throws(StorageError) {
    try file.check()
    try withWriter { try $0.checkpoint() }
  }

  func releaseMemory() {
    closeReaders()
    writing.sync { writer.releaseMemory() }
  }

  func close() throws(StorageError) {
    try checkpoint()
    try disconnect()
  }

  /// Closes all connections, and leaves the log as it is if others still have the file open.
  func disconnect() throws(StorageError) {
    closeReaders(forever: true)
    try withWriter { try $0.close() }
  }

  /// Closes idle readers now and the others after their transaction. Later ones are opened again, unless `forever`.
  private func closeReaders(forever: Bool = false) {
    let idle = readers.withLock { readers in
      defer { readers = Readers(generation: forever ? nil : readers.generation.map { $0 + 1 }) }
      return readers.idle
    }
    withExtendedLifetime(idle) {}
  }
}
