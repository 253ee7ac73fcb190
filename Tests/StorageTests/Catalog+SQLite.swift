import GRDB

@testable import Storage

// What tests of the SQLite file itself need.

extension Catalog {
  /// The file's connections.
  var pool: DatabasePool {
    guard let engine = engine as? SQLiteEngine else { preconditionFailure("the catalog is not in SQLite") }
    return engine.pool
  }

  /// Opens a catalog with other migrations than those of this version.
  convenience init(path: String, migrator: DatabaseMigrator) throws(StorageError) {
    self.init(engine: try SQLiteEngine(path: path, migrator: migrator))
  }
}
