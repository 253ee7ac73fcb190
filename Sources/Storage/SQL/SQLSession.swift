/// A transaction in progress. See `SQLEngine` for the SQL that it takes.
///
/// An engine prepares each statement once per connection and finds it again by its text, so texts are constants or have
/// few variants. Every method throws a `StorageError`. After an error of the database, the transaction can only be
/// abandoned: let the error leave the body.
package protocol SQLSession: AnyObject {
  /// What differs in the engine's SQL.
  var dialect: SQLDialect { get }

  /// Returns all rows of a result.
  func rows(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> [SQLRow]

  /// Calls `body` with each row of a result until it returns false. Keeps few rows in memory at once, so it suits large
  /// results. The body must not use the session.
  func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) throws

  /// Runs an INSERT, UPDATE or DELETE and returns the number of rows that it inserted, changed or deleted, without
  /// those of triggers and cascades.
  @discardableResult
  func run(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> Int
}

extension SQLSession {
  /// Returns all rows of a result. An argument may be nil, for NULL.
  package func rows(_ sql: String, _ arguments: [(any SQLConvertible)?] = []) throws(StorageError) -> [SQLRow] {
    try rows(sql, bound: arguments.map(SQLValue.init(argument:)))
  }

  /// Returns the first row of a result, or nil. The statement should return one row at most.
  package func row(_ sql: String, _ arguments: [(any SQLConvertible)?] = []) throws(StorageError) -> SQLRow? {
    try rows(sql, arguments).first
  }

  /// Returns the first column of the first row, or nil if there is no row or it is NULL.
  package func first<Value: SQLConvertible>(
    _ sql: String, _ arguments: [(any SQLConvertible)?] = [], as type: Value.Type = Value.self
  ) throws(StorageError) -> Value? {
    guard let row = try row(sql, arguments), let value = row.values.first, value != .null else { return nil }
    guard let converted = Value(value) else {
      throw .corrupt(column: row.columns.first ?? "", value: value.description)
    }
    return converted
  }

  /// Calls `body` with each row of a result until it returns false; see the requirement.
  package func eachRow(
    _ sql: String, _ arguments: [(any SQLConvertible)?] = [], _ body: (SQLRow) throws -> Bool
  ) throws {
    try eachRow(sql, bound: arguments.map(SQLValue.init(argument:)), body)
  }

  /// Runs a statement that changes rows and returns their number. An argument may be nil, for NULL.
  @discardableResult
  package func run(_ sql: String, _ arguments: [(any SQLConvertible)?] = []) throws(StorageError) -> Int {
    try run(sql, bound: arguments.map(SQLValue.init(argument:)))
  }
}
