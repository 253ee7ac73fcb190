import Storage

/// A PostgreSQL database under a catalog.
package final class PostgresEngine: SQLEngine {
  /// The connections.
  package let pool: PostgresPool

  /// Creates an engine. Makes no connection.
  package init(_ settings: PostgresSettings) { pool = PostgresPool(settings) }

  /// PostgreSQL's.
  package var dialect: SQLDialect { .postgres }

  /// Runs `body` in a REPEATABLE READ transaction that can't write; see `SQLEngine`.
  package func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    do { return try pool.read { try body($0) } } catch { throw Self.converted(error) }
  }

  /// Runs `body` in a SERIALIZABLE transaction, or in a READ COMMITTED one for the others; see `SQLEngine`.
  package func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    do {
      return try pool.write(TransactionMode(isolation)) { try body($0) }
    } catch { throw Self.converted(error) }
  }

  /// Returns the number of other programs' sessions on the database that call themselves `name`.
  package func sessions(named name: String) throws(StorageError) -> Int {
    try read { session in
      try session.first(
        """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = ? AND pid <> pg_backend_pid()
        """, [name]) ?? 0
    }
  }

  /// Does nothing: a server that can't be written to says so itself.
  package func checkUsable() throws(StorageError) {}

  /// Does nothing: the server's autovacuum makes room of deleted rows, and its administrators decide about its files.
  package func eraseTraces(pagesAtOnce: Int) throws(StorageError) {}

  /// Does nothing: the server has no file that could be copied.
  package func checkpoint() throws(StorageError) {}

  /// Closes all connections.
  package func close() throws(StorageError) { pool.close() }

  private static func converted(_ error: any Error) -> StorageError {
    switch error {
    case let error as StorageError: error
    case let error as PostgresError: StorageError(error)
    default: .server(state: "", message: String(describing: error))
    }
  }
}
