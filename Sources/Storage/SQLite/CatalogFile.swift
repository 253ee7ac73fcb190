import Dispatch
import GRDB
import Glibc
import Synchronization
import Terms

// Inspects the file at a catalog's path before it is opened for use. A damaged catalog might claim that a recording
// doesn't exist, so nothing is removed because of it before SQLite has checked it.

/// The condition of a catalog's file.
package enum CatalogCondition: Sendable, Equatable {
  /// There is no file or an empty database: this is the first start, or the catalog was lost.
  case new
  /// SQLite has checked every page and, unless that took too long, every index against its table.
  case intact
  /// The check hit its time limit; everything checked until then was intact.
  case unverified
}

extension Catalog {
  /// Inspects the file `path` without changing its contents.
  ///
  /// Runs `PRAGMA quick_check`, which reads the whole file, then `integrity_check`, which also verifies that an index
  /// leads to every row, for at most `seconds` in total. Throws `.damagedCatalog` if a check finds damage, the file
  /// isn't a database, or a table is missing. Blocks.
  package static func inspect(path: String, withinSeconds seconds: Double = 10) throws(StorageError) -> CatalogCondition
  {
    guard FileSystem.identity(of: path) != nil else { return .new }
    // Like SQLite, accept an empty file as a new database. But SQLite also accepts any file shorter than a page.
    let length = try FileSystem.length(of: path)
    if length == 0 { return .new }
    guard length >= 512 else { throw .damagedCatalog(path: path, detail: "it is shorter than a page") }
    do {
      // A writable connection would, when it closes, move the log left by a crash into the file.
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
    interruption.begin(after: seconds)
    defer { interruption.end() }
    return try file.read { db in
      guard try passes("quick_check", db) else { return .unverified }
      // A row that its index has lost can't be found by its ID and would seem to be deleted.
      _ = try passes("integrity_check", db)
      let tables = try String.fetchSet(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      if tables.isEmpty { return .new }
      guard tables.isSuperset(of: ["recordings", "jobs", "grdb_migrations"]) else {
        throw StorageError.damagedCatalog(path: "", detail: "its tables are missing")
      }
      return .intact
    }
  }

  /// Runs a check. Returns false if it was interrupted. Throws `.damagedCatalog` with the first finding.
  private static func passes(_ check: String, _ db: Database) throws -> Bool {
    do {
      let finding = try String.fetchOne(db, sql: "PRAGMA \(check)(1)")
      guard finding == "ok" else { throw StorageError.damagedCatalog(path: "", detail: finding ?? "no answer") }
      return true
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
      return false
    }
  }
}

extension SQLiteEngine {
  /// Throws `.damagedCatalog` if a table lacks a column that the migrations create, because a damaged schema can still
  /// be opened.
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
    for row in rows.map(SQLRow.init) {
      columns[try value(row, "of_table") as String, default: []].insert(try value(row, "name"))
    }
    return columns
  }
}

/// Interrupts every statement on a database after some seconds until `end` is called. Does so repeatedly, because an
/// interruption between two statements has no effect.
private final class Interruption: Sendable {
  private let file: DatabaseQueue
  private let isOver = Atomic(false)
  /// A separate queue: a global queue may have no thread left while other work blocks.
  private let queue = DispatchQueue(label: "catalog check")

  init(of file: DatabaseQueue) { self.file = file }

  func begin(after seconds: Double) {
    // The catalog is checked while it is opened, before there is a service.
    Clock.system.after(seconds, on: queue) { [self] in
      guard !isOver.load(ordering: .sequentiallyConsistent) else { return }
      file.interrupt()
      begin(after: 0.02)
    }
  }

  /// Stops interrupting. Waits for an interruption in progress, so that the database may be closed afterward.
  func end() {
    isOver.store(true, ordering: .sequentiallyConsistent)
    queue.sync {}
  }
}

/// The files of an open catalog, for detecting whether they were replaced.
struct CatalogFile: Sendable {
  let path: String
  private let identities: [String: FileIdentity]

  /// Records the identity of the open catalog's files. `makesPrivate` is whether to restrict them to their owner.
  init(path: String, makesPrivate: Bool = true) {
    self.path = path
    var identities: [String: FileIdentity] = [:]
    for name in [path, path + "-wal", path + "-shm"] { identities[name] = FileSystem.identity(of: name) }
    self.identities = identities
    for suffix in ["", "-wal", "-shm"] where makesPrivate { FileSystem.makePrivate(path + suffix) }
  }

  /// Throws `.catalogReplaced` if a file was removed or replaced since: commits would then be lost when the process
  /// exits. Costs three system calls.
  func check() throws(StorageError) {
    for (name, identity) in identities where FileSystem.identity(of: name) != identity {
      throw .catalogReplaced(path: path)
    }
  }
}

extension StorageError {
  /// Returns the same error with the path of the catalog.
  func naming(_ path: String) -> StorageError {
    guard case .damagedCatalog("", let detail) = self else { return self }
    return .damagedCatalog(path: path, detail: detail)
  }
}
