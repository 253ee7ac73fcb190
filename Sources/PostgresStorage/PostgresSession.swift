import Storage

/// A transaction in progress, as its body sees it. Valid only while the body runs.
///
/// After an error, PostgreSQL accepts nothing but the end of the transaction; a body that needs to go on after a
/// conflict uses ON CONFLICT.
final class PostgresSession: SQLSession {
  private let connection: PostgresConnection
  private var isClosed = false
  private var failure: PostgresError?
  /// Rows that a cursor fetches at once.
  private static let rowsAtOnce = 200

  init(_ connection: PostgresConnection) { self.connection = connection }

  var dialect: SQLDialect { .postgres }

  /// Ends the use of the session and returns the first error of a statement, which the body may have caught.
  func close() -> PostgresError? {
    isClosed = true
    return failure
  }

  /// Runs a statement.
  func result(_ sql: String, _ arguments: [SQLValue]) throws(PostgresError) -> StatementResult {
    precondition(!isClosed, "a session is used after its transaction's body")
    if let failure { throw failure }
    do { return try connection.run(sql, arguments) } catch {
      failure = error
      throw error
    }
  }

  func rows(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> [SQLRow] {
    do throws(PostgresError) { return try result(sql, arguments).rows } catch { throw StorageError(error) }
  }

  func run(_ sql: String, bound arguments: [SQLValue]) throws(StorageError) -> Int {
    do throws(PostgresError) { return try result(sql, arguments).changedRows } catch { throw StorageError(error) }
  }

  func eachRow(_ sql: String, bound arguments: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    _ = try run("DECLARE each_row NO SCROLL CURSOR FOR " + sql, bound: arguments)
    var isOver = false
    while !isOver {
      let rows = try rows("FETCH \(Self.rowsAtOnce) FROM each_row", bound: [])
      isOver = rows.count < Self.rowsAtOnce
      for row in rows where try !body(row) {
        isOver = true
        break
      }
    }
    _ = try run("CLOSE each_row", bound: [])
  }
}
