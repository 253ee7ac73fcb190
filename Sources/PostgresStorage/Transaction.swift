import Storage

/// How a transaction runs.
struct TransactionMode {
  /// What begins it, in one round trip. A writing transaction gets its ID at once, so that its outcome can be looked up
  /// if the response to COMMIT is lost.
  let begin: String
  let writes: Bool

  /// Sees one snapshot and changes nothing.
  static let read = TransactionMode(begin: "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", writes: false)
  /// As if all transactions in this mode ran one after the other.
  static let serializable = TransactionMode(
    begin: "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT pg_current_xact_id()", writes: true)
  /// Each statement sees the rows that are committed when it begins, and must take its own locks.
  static let statementLocks = TransactionMode(
    begin: "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_current_xact_id()", writes: true)
  /// Like `statementLocks`, and COMMIT doesn't wait for the disk or a standby.
  static let unflushed = TransactionMode(
    begin: "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit TO off; SELECT pg_current_xact_id()",
    writes: true)

  init(begin: String, writes: Bool) {
    self.begin = begin
    self.writes = writes
  }

  /// The mode for an isolation of the catalog.
  init(_ isolation: SQLIsolation) {
    switch isolation {
    case .serializable: self = .serializable
    case .statementLocks: self = .statementLocks
    case .unflushed: self = .unflushed
    }
  }
}

/// A transaction whose COMMIT was sent.
struct SentCommit: Equatable {
  let transaction: UInt64
  /// The process ID of its session's backend.
  let backend: Int32
  /// The server's epoch, or nil if that isn't known.
  let epoch: String?
}

/// How one run of a transaction ended.
enum TransactionEnd<Value> {
  case committed(Value)
  /// Nothing was changed.
  case failed(any Error, hadBegun: Bool)
  /// The connection was lost after COMMIT was sent.
  case unknown(Value, SentCommit)
}

/// One run of a transaction on a connection.
struct TransactionRun {
  let connection: PostgresConnection
  let mode: TransactionMode

  /// Runs `body` between BEGIN and COMMIT or ROLLBACK.
  func callAsFunction<Value>(_ body: (PostgresSession) throws -> Value) -> TransactionEnd<Value> {
    let id: String?
    do { id = try connection.run(script: mode.begin).value } catch { return .failed(error, hadBegun: false) }
    let session = PostgresSession(connection)
    let value: Value
    do {
      value = try body(session)
      // The body caught an error after which the transaction can't be committed.
      if let failure = session.close() { throw failure }
    } catch {
      let failure = session.close()
      rollBack()
      // The body may have turned a serialization failure into an error of its own, or have seen inconsistent rows.
      if let failure, failure.isRetryable { return .failed(failure, hadBegun: true) }
      return .failed(error, hadBegun: true)
    }
    return commit(value, id: id.flatMap { UInt64($0) })
  }

  private func commit<Value>(_ value: Value, id: UInt64?) -> TransactionEnd<Value> {
    let sent = id.map { SentCommit(transaction: $0, backend: connection.backend, epoch: connection.epoch) }
    do {
      let command = try connection.run(script: "COMMIT").command
      // A failed transaction is rolled back by COMMIT, without an error.
      guard command == "COMMIT" else {
        return .failed(
          PostgresError.statement(PostgresFailure(sqlState: "25P02", message: "COMMIT rolled back")), hadBegun: true)
      }
      return .committed(value)
    } catch {
      guard case .connectionLost = error else {
        rollBack()
        return .failed(error, hadBegun: true)
      }
      // What was read was consistent.
      guard mode.writes, let sent else { return .committed(value) }
      return .unknown(value, sent)
    }
  }

  private func rollBack() {
    guard !connection.isBroken, connection.isInTransaction else { return }
    _ = try? connection.run(script: "ROLLBACK")
  }
}
