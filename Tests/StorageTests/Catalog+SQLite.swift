@testable import Storage

// What tests of the SQLite file itself need.

extension Catalog {
  /// The engine of a catalog in SQLite.
  var sqlite: SQLiteEngine {
    guard let engine = engine as? SQLiteEngine else { preconditionFailure("the catalog is not in SQLite") }
    return engine
  }

  /// Opens a catalog with other migrations than those of this version.
  convenience init(path: String, migrations: [String]) throws(StorageError) {
    self.init(engine: try SQLiteEngine(path: path, migrations: migrations))
  }
}
