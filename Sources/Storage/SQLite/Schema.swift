// The catalog's tables in SQLite: those of CatalogTables, the index of names (Schema+Names), and triggers that count
// what tenants have (Schema+Usage). A migration that has been released is never changed: a new one is added below it.
// Every migration runs in a transaction of its own, which also counts it in the file's `user_version`.

import CSQLite

enum Schema {
  /// The scripts of all migrations, oldest first.
  static let migrations = [CatalogTables.sql(.sqlite) + names + usage]

  /// Returns the number of migrations that the catalog has had.
  ///
  /// Throws `.newerSchema` if there are more than these, and `.unreleasedSchema` if it has tables but had none: it was
  /// made before the first release, or by another program.
  static func version(_ db: SQLiteConnection, path: String, of migrations: [String]) throws(StorageError) -> Int {
    let version = try db.first("PRAGMA user_version", as: Int.self) ?? 0
    guard version <= migrations.count else { throw .newerSchema(path: path) }
    if version < 1, try db.first("SELECT count(*) FROM sqlite_schema") != 0 { throw .unreleasedSchema(path: path) }
    return version
  }

  /// Applies the missing migrations. Foreign keys are checked at the end of each, so a migration can replace a table.
  ///
  /// Throws like `version`, or `.damagedCatalog` if a table lacks a column that the migrations create, because a
  /// damaged schema can still be opened.
  static func migrate(_ db: SQLiteConnection, path: String, _ migrations: [String] = migrations) throws(StorageError) {
    if try version(db, path: path, of: migrations) < migrations.count {
      try db.execute("PRAGMA foreign_keys = OFF")
      for number in migrations.indices { try migrate(db, path: path, to: number + 1, of: migrations) }
      try db.execute("PRAGMA foreign_keys = ON")
    }
    try checkColumns(db, migrations)
  }

  private static func migrate(
    _ db: SQLiteConnection, path: String, to number: Int, of migrations: [String]
  ) throws(StorageError) {
    try db.transaction {
      // Another process may have done it in the meantime.
      guard try version(db, path: path, of: migrations) < number else { return }
      try db.execute(migrations[number - 1])
      guard try db.rows("PRAGMA foreign_key_check").isEmpty else {
        throw StorageError.database(code: SQLITE_CONSTRAINT, message: "a migration breaks a foreign key")
      }
      try db.execute("PRAGMA user_version = \(number)")
    }
  }

  /// Throws `.damagedCatalog` if a table lacks a column that the migrations create, or its own statement is damaged.
  static func checkColumns(_ db: SQLiteConnection, _ migrations: [String]) throws(StorageError) {
    let model = try SQLiteConnection(":memory:")
    for script in migrations { try model.execute(script) }
    let found: [String: Set<String>]
    do throws(StorageError) { found = try columns(db) } catch .database(SQLITE_ERROR, let message) {
      // Virtual tables parse their statements when they are first asked for.
      throw .damagedCatalog(path: "", detail: message)
    }
    for (table, columns) in try columns(model) where !columns.isSubset(of: found[table] ?? []) {
      throw .damagedCatalog(path: "", detail: "table \(table) lacks columns")
    }
  }

  private static func columns(_ db: SQLiteConnection) throws(StorageError) -> [String: Set<String>] {
    let rows = try db.rows(
      """
      SELECT tables.name, columns.name FROM sqlite_schema AS tables
      JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'
      """)
    return Dictionary(grouping: rows, by: { $0.values[0].description }).mapValues { rows in
      Set(rows.map { $0.values[1].description })
    }
  }
}
