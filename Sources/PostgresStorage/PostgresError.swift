/// Errors of PostgreSQL and of the way to it. None of them contains a password; the cases carry facts, and the text is
/// added elsewhere.
package enum PostgresError: Error, Equatable, Sendable {
  /// libpq can't be loaded. `package` is Debian's package that has it.
  case libraryMissing(file: String, package: String, reason: String)

  /// The URL of the database can't be used.
  case invalidAddress(PostgresAddress.Fault)

  /// No server accepted a connection. `reason` is libpq's, which may name several hosts.
  case cannotConnect(reason: String)

  /// The server is too old; `version` is like 120005.
  case unsupportedServer(version: Int)

  /// The database's encoding isn't UTF8, so that it can't have every name.
  case wrongEncoding(String)

  /// A pooler gives transactions of one connection different sessions.
  case sharedSession

  /// The connection ended or the server didn't answer in time. What hadn't been committed is rolled back.
  case connectionLost(sqlState: String?, reason: String)

  /// The server rejected a statement; its transaction is rolled back.
  case statement(PostgresFailure)

  /// A result has a column of a type that isn't decoded; `type` is its OID. The statement should cast it.
  case unsupportedType(column: String, type: UInt32)

  /// A text contains U+0000, which PostgreSQL can't store.
  case nulInText

  /// All connections were in use for as long as the caller could wait.
  case noFreeConnection(waitedSeconds: Double)

  /// The pool is closed.
  case closed

  /// The connection was lost during COMMIT, and it can't be known whether the transaction was committed.
  case outcomeUnknown(transaction: UInt64, cause: UnknownOutcome)

  /// The schema is newer than this program, and a migration since then doesn't support this program any more.
  /// `version` is the schema's, `known` the newest known here, and `oldest` the oldest that may use the schema.
  case newerSchema(version: Int, known: Int, oldest: Int)

  /// The database has a migration that differs from the one with the same number here.
  case differentMigration(number: Int, name: String)

  /// Whether a new connection may do better. If a statement fails so, its transaction wasn't committed.
  package var isLostConnection: Bool {
    switch self {
    case .connectionLost: true
    // A server that was demoted to a standby since the connection was made.
    case .statement(let failure): failure.sqlState == "25006"
    default: false
    }
  }

  /// Whether the same transaction may succeed if it runs again.
  package var isRetryable: Bool {
    if case .statement(let failure) = self { return failure.isRetryable }
    return isLostConnection
  }

  /// The SQLSTATE (PostgreSQL's documentation, appendix A), if the server sent one.
  package var sqlState: String? {
    switch self {
    case .statement(let failure): failure.sqlState
    case .connectionLost(let sqlState, _): sqlState
    default: nil
    }
  }
}

/// Why it can't be known whether a transaction was committed.
package enum UnknownOutcome: Equatable, Sendable {
  /// No server could be asked, or the transaction was still in progress, until the deadline.
  case deadline(reason: String)
  /// The server recovered from a crash, or a standby took over, in the meantime. Either may have given the
  /// transaction's ID to another transaction.
  case serverRecovered
  /// The server has discarded the status of transactions that old.
  case forgotten
}

/// An error that the server reported for a statement.
package struct PostgresFailure: Error, Equatable, Sendable {
  /// Five characters; see PostgreSQL's documentation, appendix A.
  package let sqlState: String
  /// The server's primary message, in its language. Its detail, which can contain a row's values, is left out.
  package let message: String
  /// The violated constraint or unique index.
  package let constraint: String?
  /// Whether a prepared statement has become stale, because a table was altered or a proxy changed connections.
  package let isStaleStatement: Bool

  /// Creates an error.
  package init(sqlState: String, message: String, constraint: String? = nil, isStaleStatement: Bool = false) {
    self.sqlState = sqlState
    self.message = message
    self.constraint = constraint
    self.isStaleStatement = isStaleStatement
  }

  /// Whether a prepared statement isn't in its session, or another one is: only a pooler that changes sessions makes
  /// this happen.
  package var namesOtherSession: Bool { sqlState == "26000" || sqlState == "42P05" }

  /// Whether the same transaction may succeed if it runs again: a serialization failure, a deadlock, or a stale
  /// prepared statement.
  package var isRetryable: Bool { sqlState == "40001" || sqlState == "40P01" || isStaleStatement }
}
