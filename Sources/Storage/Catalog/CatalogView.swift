import FoundationEssentials
import GRDB
import Glibc

// How a catalog is read without a change to anything beside it. SQLite makes a log and an index of the log (-wal, -shm)
// even for a connection that only reads. So where no service holds the data directory's lock, the catalog and its log
// are copied and the copy read. Beside a service, which has made both, a reading connection changes no more than the
// marks of readers in the index. A catalog of an earlier version is copied in either case, and the copy brought up to
// date.

/// A catalog that is looked at, and left as it is.
final class CatalogView {
  /// What it holds: up to date, or as it was a moment ago.
  let catalog: Catalog
  /// Whether it is of an earlier version.
  let isOlder: Bool
  /// Whether it is empty, or there is none.
  let isNew: Bool
  /// Whether a service has it open, and what it holds may change.
  let isLive: Bool
  private let copy: String?

  /// Opens the catalog at `path`. Throws `.damagedCatalog` where it can't be read, `.newerSchema`. Takes a copy's room
  /// in the folder for temporary files.
  init(path: String) throws(StorageError) {
    do {
      let lock = FileSystem.parent(of: path) + "/lock"
      if FileSystem.identity(of: path) != nil, try Self.isHeld(lock) {
        isLive = true
        isNew = try Catalog.inspect(path: path, withinSeconds: 3600) == .new
        let pool = try DatabasePool(path: path, configuration: Self.reading)
        isOlder = try !isNew && Self.isOlder(pool)
        if !isOlder, !isNew {
          if try pool.read(Schema.migrator.hasBeenSuperseded) { throw StorageError.newerSchema(path: path) }
          try pool.read { try Catalog.checkColumns($0, migrator: Schema.migrator) }
          (catalog, copy) = (Catalog(reading: pool, path: path), nil)
          return
        }
        let folder = try Self.makeFolder()
        copy = folder
        try pool.backup(to: DatabaseQueue(path: folder + "/catalog.sqlite"))
        catalog = try Self.open(folder)
      } else {
        isLive = false
        let folder = try Self.makeFolder()
        do {
          for suffix in ["", "-wal"] where FileSystem.identity(of: path + suffix) != nil {
            try FileSystem.copy(path + suffix, to: folder + "/catalog.sqlite" + suffix)
          }
          let copied = folder + "/catalog.sqlite"
          isNew = try Catalog.inspect(path: copied, withinSeconds: 3600) == .new
          isOlder = try !isNew && Self.isOlder(DatabaseQueue(path: copied, configuration: Self.reading))
          catalog = try Self.open(folder)
          copy = folder
        } catch {
          try? FileSystem.remove(folder)
          throw error
        }
      }
    } catch {
      throw Self.naming(path, StorageError(error))
    }
  }

  /// Whether a process holds the lock file at `path`.
  private static func isHeld(_ path: String) throws(StorageError) -> Bool {
    guard FileSystem.identity(of: path) != nil else { return false }
    return try !FileDescriptor(path: path, flags: O_RDONLY).lock()
  }

  deinit {
    try? catalog.pool.close()
    if let copy { try? FileSystem.remove(copy) }
  }

  private static var reading: Configuration {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    return configuration
  }

  private static func isOlder(_ file: some DatabaseReader) throws -> Bool {
    try file.read { db in
      // Of a newer one, opening says so.
      try !Schema.migrator.hasBeenSuperseded(db) && !Schema.migrator.hasCompletedMigrations(db)
    }
  }

  private static func makeFolder() throws(StorageError) -> String {
    let path = FileManager.default.temporaryDirectory.path + "/stillwave-check-" + UUIDv7().text
    try FileSystem.makeFolders(path)
    return path
  }

  private static func open(_ folder: String) throws(StorageError) -> Catalog {
    do { return try Catalog(path: folder + "/catalog.sqlite") } catch {
      try? FileSystem.remove(folder)
      throw error
    }
  }

  /// The same error, of the catalog that was copied.
  private static func naming(_ path: String, _ error: StorageError) -> StorageError {
    switch error {
    case .damagedCatalog(_, let detail): .damagedCatalog(path: path, detail: detail)
    case .newerSchema: .newerSchema(path: path)
    default: error
    }
  }
}
