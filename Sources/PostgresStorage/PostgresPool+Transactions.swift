import Storage
import Terms

extension PostgresPool {
  /// Runs `body` in a transaction that sees one snapshot and changes nothing.
  ///
  /// The body runs once at most. If the connection turns out to be dead before that, another one is used.
  func read<Value>(_ body: (PostgresSession) throws -> Value) throws -> Value {
    var left = settings.attempts
    while true {
      left -= 1
      switch try run(.read, body) {
      case .committed(let value), .unknown(let value, _): return value
      case .failed(let error, let hadBegun):
        guard !hadBegun, left > 0, (error as? PostgresError)?.isLostConnection == true else { throw error }
      }
    }
  }

  /// Runs `body` in a transaction and commits it.
  ///
  /// After a serialization failure, a deadlock, or a lost connection, the body runs again in a new transaction, up to
  /// the settings' number of attempts; then the last error is thrown. If the response to COMMIT is lost, the outcome
  /// is looked up, and `.outcomeUnknown` is thrown only if that fails.
  func write<Value>(_ mode: TransactionMode, _ body: (PostgresSession) throws -> Value) throws -> Value {
    var backoff = Backoff(firstSeconds: 0.002, limitSeconds: 0.25)
    var left = settings.attempts
    while true {
      left -= 1
      let failure: any Error
      switch try run(mode, body) {
      case .committed(let value): return value
      case .failed(let error, _): failure = error
      case .unknown(let value, let commit):
        if try CommitOutcome(commit, settings: settings).wasCommitted() { return value }
        failure = PostgresError.connectionLost(sqlState: nil, reason: "the connection was lost during COMMIT")
      }
      guard left > 0, (failure as? PostgresError)?.isRetryable == true else { throw failure }
      settings.clock.pause(backoff.seconds())
    }
  }

  private func run<Value>(
    _ mode: TransactionMode, _ body: (PostgresSession) throws -> Value
  ) throws(PostgresError) -> TransactionEnd<Value> {
    let connection = try take()
    defer { give(connection) }
    let end = TransactionRun(connection: connection, mode: mode)(body)
    // A server that only reads won't change its mind within the session.
    if case .failed(let error as PostgresError, _) = end, error.sqlState == "25006" { connection.giveUp() }
    return end
  }
}
