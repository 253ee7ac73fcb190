/// A value that is stored as a row of a table, all of whose columns are read and written together.
protocol TableRow {
  /// The name of the table.
  static var table: String { get }
  /// The columns of its primary key.
  static var key: [String] { get }

  /// Reads a row. Throws `.corrupt` if it could not have been written by the program.
  init(row: SQLRow) throws

  /// Sets the value of each column.
  func encode(to columns: inout ColumnValues) throws

  /// Notes that the row was inserted or changed, if others must know.
  func note(in db: CatalogTransaction)
}

/// The values of a row's columns.
struct ColumnValues {
  fileprivate var names: [String] = []
  fileprivate var values: [SQLValue] = []

  /// Sets the value of a column, each of them once. Getting it returns nil.
  subscript(_ column: String) -> (any SQLConvertible)? {
    get { nil }
    set {
      names.append(column)
      values.append(SQLValue(argument: newValue))
    }
  }
}

extension TableRow {
  static var key: [String] { ["id"] }

  func note(in db: CatalogTransaction) {}

  /// Inserts the row. Throws if there is one with its key.
  func insert(_ db: CatalogTransaction) throws { try insert(db, orElse: "") }

  /// Inserts the row, or replaces the one with its key.
  func insertOrReplace(_ db: CatalogTransaction) throws {
    let columns = try columns
    let changes = columns.names.filter { !Self.key.contains($0) }.map { "\"\($0)\" = excluded.\"\($0)\"" }
    try insert(
      db, orElse: " ON CONFLICT (\(Self.key.joined(separator: ", "))) DO UPDATE SET \(changes.joined(separator: ", "))")
  }

  /// Updates the row with this value's key and tenant. Throws `.changedMeanwhile` if there is no such row.
  func update(_ db: CatalogTransaction) throws {
    let columns = try columns
    // A row's tenant never changes.
    let fixed = Self.key + ["tenant"]
    var (changes, arguments, key) = ([String](), [SQLValue](), [SQLValue]())
    for (name, value) in zip(columns.names, columns.values) {
      if fixed.contains(name) {
        key.append(value)
      } else {
        changes.append("\"\(name)\" = ?")
        arguments.append(value)
      }
    }
    let condition = columns.names.filter(fixed.contains).map { "\($0) = ?" }.joined(separator: " AND ")
    let sql = "UPDATE \(Self.table) SET \(changes.joined(separator: ", ")) WHERE \(condition)"
    guard try db.run(sql, bound: arguments + key) == 1 else { throw StorageError.changedMeanwhile }
    note(in: db)
  }

  private func insert(_ db: CatalogTransaction, orElse conflict: String) throws {
    let columns = try columns
    let names = columns.names.map { "\"\($0)\"" }.joined(separator: ", ")
    let marks = columns.names.map { _ in "?" }.joined(separator: ", ")
    try db.run("INSERT INTO \(Self.table) (\(names)) VALUES (\(marks))\(conflict)", bound: columns.values)
    note(in: db)
  }

  private var columns: ColumnValues {
    get throws {
      var columns = ColumnValues()
      try encode(to: &columns)
      return columns
    }
  }
}
