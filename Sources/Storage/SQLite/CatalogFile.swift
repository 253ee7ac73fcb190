import CSQLite
import Dispatch
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
    do throws(StorageError) {
      // A writable connection would, when it closes, move the log left by a crash into the file.
      return try inspect(SQLiteConnection(path, isReadOnly: true), withinSeconds: seconds)
    } catch .database(SQLITE_INTERRUPT, _) {
      return .unverified
    } catch {
      throw error.naming(path)
    }
  }

  private static func inspect(
    _ file: SQLiteConnection, withinSeconds seconds: Double
  ) throws(StorageError) -> CatalogCondition {
    // The interruption may keep the connection for as long as it was to wait.
    defer { try? file.close() }
    let interruption = Interruption(of: file)
    interruption.begin(after: seconds)
    defer { interruption.end() }
    return try file.transaction("BEGIN") {
      guard try passes("quick_check", file) else { return .unverified }
      // A row that its index has lost can't be found by its ID and would seem to be deleted.
      _ = try passes("integrity_check", file)
      let tables = try file.rows("SELECT name FROM sqlite_schema WHERE type = 'table'").map { $0.values[0] }
      if tables.isEmpty { return .new }
      guard tables.contains(.text("recordings")), tables.contains(.text("jobs")) else {
        throw StorageError.damagedCatalog(path: "", detail: "its tables are missing")
      }
      return .intact
    }
  }

  /// Runs a check. Returns false if it was interrupted. Throws `.damagedCatalog` with the first finding.
  private static func passes(_ check: String, _ file: SQLiteConnection) throws(StorageError) -> Bool {
    do throws(StorageError) {
      let finding = try file.first("PRAGMA \(check)(1)", as: String.self)
      guard finding == "ok" else { throw .damagedCatalog(path: "", detail: finding ?? "no answer") }
      return true
    } catch .database(SQLITE_INTERRUPT, _) {
      return false
    }
  }
}

/// Interrupts every statement on a database after some seconds until `end` is called. Does so repeatedly, because an
/// interruption between two statements has no effect.
private final class Interruption: Sendable {
  private let file: SQLiteConnection
  private let isOver = Atomic(false)
  /// A separate queue: a global queue may have no thread left while other work blocks.
  private let queue = DispatchQueue(label: "catalog check")

  init(of file: SQLiteConnection) { self.file = file }

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
