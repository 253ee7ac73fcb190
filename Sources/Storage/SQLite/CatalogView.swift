import FoundationEssentials
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
  init(path: String, migrations: [String] = Schema.migrations) throws(StorageError) {
    do throws(StorageError) {
      let lock = FileSystem.parent(of: path) + "/lock"
      if FileSystem.identity(of: path) != nil, try Self.isHeld(lock) {
        isLive = true
        isNew = try Catalog.inspect(path: path, withinSeconds: 3600) == .new
        let engine = try SQLiteEngine(reading: path)
        isOlder = try isNew ? false : engine.withWriter { try Self.isOlder($0, than: migrations) }
        if !isOlder, !isNew {
          try engine.withWriter { try Schema.checkColumns($0, migrations) }
          (catalog, copy) = (Catalog(engine: engine), nil)
          return
        }
        let folder = try Self.makeFolder()
        copy = folder
        try engine.withWriter { _ = try $0.run("VACUUM INTO ?", [folder + "/catalog.sqlite"]) }
        catalog = try Self.open(folder, migrations)
      } else {
        isLive = false
        let folder = try Self.makeFolder()
        do throws(StorageError) {
          for suffix in ["", "-wal"] where FileSystem.identity(of: path + suffix) != nil {
            try FileSystem.copy(path + suffix, to: folder + "/catalog.sqlite" + suffix)
          }
          let copied = folder + "/catalog.sqlite"
          isNew = try Catalog.inspect(path: copied, withinSeconds: 3600) == .new
          isOlder = try isNew ? false : Self.isOlder(SQLiteConnection(copied, isReadOnly: true), than: migrations)
          catalog = try Self.open(folder, migrations)
          copy = folder
        } catch {
          try? FileSystem.remove(folder)
          throw error
        }
      }
    } catch {
      throw Self.naming(path, error)
    }
  }

  /// Whether a process holds a lock on the file at `path`.
  private static func isHeld(_ path: String) throws(StorageError) -> Bool {
    guard FileSystem.identity(of: path) != nil else { return false }
    return try !FileDescriptor(path: path, flags: O_RDONLY).lock()
  }

  deinit {
    try? (catalog.engine as? SQLiteEngine)?.disconnect()
    if let copy { try? FileSystem.remove(copy) }
  }

  private static func isOlder(_ file: SQLiteConnection, than migrations: [String]) throws(StorageError) -> Bool {
    try Schema.version(file, path: "", of: migrations) < migrations.count
  }

  private static func makeFolder() throws(StorageError) -> String {
    let path = FileManager.default.temporaryDirectory.path + "/stillwave-check-" + UUIDv7().text
    try FileSystem.makeFolders(path)
    return path
  }

  private static func open(_ folder: String, _ migrations: [String]) throws(StorageError) -> Catalog {
    do {
      return Catalog(engine: try SQLiteEngine(path: folder + "/catalog.sqlite", migrations: migrations))
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
