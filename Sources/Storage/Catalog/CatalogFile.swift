import Dispatch
import GRDB
import Glibc
import Synchronization

// What is at a catalog's path, looked at before it is opened for use. A damaged catalog may answer that a recording is
// not there, so nothing is removed on its word before SQLite has checked it.

/// The condition of a catalog's file.
package enum CatalogCondition: Sendable, Equatable {
  /// There is no file, or an empty database: a first start, or a catalog that was lost.
  case new
  /// SQLite has checked every page, and every index against its table unless that took too long.
  case intact
  /// The check was cut off at its time limit; what it had seen until then was intact.
  case unverified
}

extension Catalog {
  /// Looks at the file `path` without changing what it holds.
  ///
  /// Runs `PRAGMA quick_check`, which reads the whole file, then `integrity_check`, which also looks whether an index
  /// leads to every row, for at most `seconds` together. Throws `.damagedCatalog` where the check finds damage, the
  /// file is no database, or one of the tables is missing. Blocks.
  package static func inspect(path: String, withinSeconds seconds: Double = 10) throws(StorageError) -> CatalogCondition
  {
    guard FileSystem.identity(of: path) != nil else { return .new }
    // SQLite takes an empty file for a new database, and so do we; but it takes any shorter than a page for one as
    // well.
    let length = try FileSystem.length(of: path)
    if length == 0 { return .new }
    guard length >= 512 else { throw .damagedCatalog(path: path, detail: "it is shorter than a page") }
    do {
      // A writing connection would move a crash's log into the file when it closes.
      var configuration = Configuration()
      configuration.readonly = true
      return try inspect(try DatabaseQueue(path: path, configuration: configuration), withinSeconds: seconds)
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
      return .unverified
    } catch {
      throw StorageError(error).naming(path)
    }
  }

  private static func inspect(_ file: DatabaseQueue, withinSeconds seconds: Double) throws -> CatalogCondition {
    defer { try? file.close() }
    let interruption = Interruption(of: file)
    interruption.begin(at: .now() + seconds)
    defer { interruption.end() }
    return try file.read { db in
      guard try passes("quick_check", db) else { return .unverified }
      // A row that its index has lost is not found by its id, and would seem to be deleted.
      _ = try passes("integrity_check", db)
      let tables = try String.fetchSet(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      if tables.isEmpty { return .new }
      guard tables.isSuperset(of: ["recordings", "jobs", "grdb_migrations"]) else {
        throw StorageError.damagedCatalog(path: "", detail: "its tables are missing")
      }
      return .intact
    }
  }

  /// False where the check was cut off. Throws `.damagedCatalog` with the first of what it finds.
  private static func passes(_ check: String, _ db: Database) throws -> Bool {
    do {
      let finding = try String.fetchOne(db, sql: "PRAGMA \(check)(1)")
      guard finding == "ok" else { throw StorageError.damagedCatalog(path: "", detail: finding ?? "no answer") }
      return true
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
      return false
    }
  }

  /// Throws `.damagedCatalog` where a table lacks a column that the migrations make: a damaged schema still opens.
  static func checkColumns(_ db: Database, migrator: DatabaseMigrator) throws {
    let model = try DatabaseQueue()
    try migrator.migrate(model)
    let expected = try model.read(columns)
    let found = try columns(db)
    for (table, columns) in expected where !columns.isSubset(of: found[table] ?? []) {
      throw StorageError.damagedCatalog(path: "", detail: "table \(table) lacks columns")
    }
  }

  private static func columns(_ db: Database) throws -> [String: Set<String>] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT tables.name AS of_table, columns.name AS name FROM sqlite_master AS tables
        JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'
        """)
    var columns: [String: Set<String>] = [:]
    for row in rows { columns[try value(row, "of_table") as String, default: []].insert(try value(row, "name")) }
    return columns
  }
}

/// Cuts off whatever statement a database runs, from a moment on until it is ended: again and again, as an interruption
/// that comes between two statements is lost.
private final class Interruption: Sendable {
  private let file: DatabaseQueue
  private let isOver = Mutex(false)
  /// Of its own: a global queue has no thread left while others' blocking work holds all it may have.
  private let queue = DispatchQueue(label: "catalog check")

  init(of file: DatabaseQueue) { self.file = file }

  func begin(at deadline: DispatchTime) {
    queue.asyncAfter(deadline: deadline) { [self] in
      // Under the lock: the database is open for as long as the end has not come.
      let goesOn = isOver.withLock { isOver in
        if !isOver { file.interrupt() }
        return !isOver
      }
      if goesOn { begin(at: .now() + 0.02) }
    }
  }

  func end() { isOver.withLock { $0 = true } }
}

/// The files of an open catalog: whether they are still the ones that were opened.
struct CatalogFile: Sendable {
  let path: String
  private let identities: [String: FileIdentity]

  /// The catalog that is open at `path`, with its log; with `makesPrivate`, its owner's alone from now on.
  init(path: String, makesPrivate: Bool = true) {
    self.path = path
    var identities: [String: FileIdentity] = [:]
    for name in [path, path + "-wal", path + "-shm"] { identities[name] = FileSystem.identity(of: name) }
    self.identities = identities
    for suffix in ["", "-wal", "-shm"] where makesPrivate { FileSystem.makePrivate(path + suffix) }
  }

  /// Throws `.catalogReplaced` where a file was removed or replaced since: what is committed would be lost with the
  /// process. Costs three system calls.
  func check() throws(StorageError) {
    for (name, identity) in identities where FileSystem.identity(of: name) != identity {
      throw .catalogReplaced(path: path)
    }
  }
}

extension StorageError {
  /// The same error, naming the catalog it was met in.
  func naming(_ path: String) -> StorageError {
    guard case .damagedCatalog("", let detail) = self else { return self }
    return .damagedCatalog(path: path, detail: detail)
  }
}
