import FoundationEssentials
import GRDB
import Glibc

// Reads a catalog without modifying anything next to it. SQLite creates a log and an index of the log (-wal, -shm) even
// for a read-only connection. So if no service holds the data directory's lock, the catalog and its log are copied, and
// the copy is read. If a service is running, both files already exist, and a reading connection changes only the
// readers' marks in the index. In either case a catalog of an earlier version is copied, and the copy is upgraded.

/// A catalog opened for inspection, without modifying it.
final class CatalogView {
  /// The current catalog or a recent copy.
  let catalog: Catalog
  /// Whether the catalog is of an earlier version.
  let isOlder: Bool
  /// Whether the catalog is empty or missing.
  let isNew: Bool
  /// Whether a service has the catalog open, so that its contents may change.
  let isLive: Bool
  private let copy: String?

  /// Opens the catalog at `path`. Throws `.damagedCatalog` if it can't be read, `.newerSchema` or `.unreleasedSchema`.
  /// May need room for a copy in the folder for temporary files.
  init(path: String, migrator: DatabaseMigrator = Schema.migrator) throws(StorageError) {
    do {
      let lock = FileSystem.parent(of: path) + "/lock"
      if FileSystem.identity(of: path) != nil, try Self.isHeld(lock) {
        isLive = true
        isNew = try Catalog.inspect(path: path, withinSeconds: 3600) == .new
        let pool = try DatabasePool(path: path, configuration: Self.reading)
        isOlder = try !isNew && Self.isOlder(pool, than: migrator)
        if !isOlder, !isNew {
          try pool.read { try Schema.check($0, path: path, migrator: migrator) }
          try pool.read { try SQLiteEngine.checkColumns($0, migrator: migrator) }
          (catalog, copy) = (Catalog(engine: SQLiteEngine(reading: pool, path: path)), nil)
          return
        }
        let folder = try Self.makeFolder()
        copy = folder
        try pool.backup(to: DatabaseQueue(path: folder + "/catalog.sqlite"))
        catalog = try Self.open(folder, migrator)
      } else {
        isLive = false
        let folder = try Self.makeFolder()
        do {
          for suffix in ["", "-wal"] where FileSystem.identity(of: path + suffix) != nil {
            try FileSystem.copy(path + suffix, to: folder + "/catalog.sqlite" + suffix)
          }
          let copied = folder + "/catalog.sqlite"
          isNew = try Catalog.inspect(path: copied, withinSeconds: 3600) == .new
          isOlder = try !isNew && Self.isOlder(DatabaseQueue(path: copied, configuration: Self.reading), than: migrator)
          catalog = try Self.open(folder, migrator)
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

  /// Whether a process holds a lock on the file at `path`.
  private static func isHeld(_ path: String) throws(StorageError) -> Bool {
    guard FileSystem.identity(of: path) != nil else { return false }
    return try !FileDescriptor(path: path, flags: O_RDONLY).lock()
  }

  deinit {
    try? (catalog.engine as? SQLiteEngine)?.pool.close()
    if let copy { try? FileSystem.remove(copy) }
  }

  private static var reading: Configuration {
    var configuration = Configuration()
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    return configuration
  }

  private static func isOlder(_ file: some DatabaseReader, than migrator: DatabaseMigrator) throws -> Bool {
    try file.read { db in
      // If the catalog is newer, opening it throws.
      try !migrator.hasBeenSuperseded(db) && !migrator.hasCompletedMigrations(db)
    }
  }

  private static func makeFolder() throws(StorageError) -> String {
    let path = FileManager.default.temporaryDirectory.path + "/stillwave-check-" + UUIDv7().text
    try FileSystem.makeFolders(path)
    return path
  }

  private static func open(_ folder: String, _ migrator: DatabaseMigrator) throws(StorageError) -> Catalog {
    do {
      return Catalog(engine: try SQLiteEngine(path: folder + "/catalog.sqlite", migrator: migrator))
    } catch {
      try? FileSystem.remove(folder)
      throw error
    }
  }

  /// Returns the same error with the path of the original.
  private static func naming(_ path: String, _ error: StorageError) -> StorageError {
    switch error {
    case .damagedCatalog(_, let detail): .damagedCatalog(path: path, detail: detail)
    case .newerSchema: .newerSchema(path: path)
    case .unreleasedSchema: .unreleasedSchema(path: path)
    default: error
    }
  }
}
