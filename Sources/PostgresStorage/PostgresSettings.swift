import Terms

/// How a database is used. The address's own parameters take precedence, except that the server must be one that can be
/// written to.
package struct PostgresSettings: Sendable {
  /// Where the database is.
  package var address: PostgresAddress
  /// How the server's list of sessions names this program.
  package var applicationName = "stillwave"
  /// Seconds per host until a connection must be established, at least 2.
  package var connectTimeoutSeconds = 5
  /// Seconds until the server ends a statement. If it hasn't responded a little later, the connection is given up.
  package var statementTimeoutSeconds = 30.0
  /// Seconds after which the server ends a session that is idle inside a transaction, so that a process that has
  /// stopped holds no locks.
  package var idleInTransactionTimeoutSeconds = 15.0
  /// Seconds without an acknowledgment after which the kernel gives up a TCP connection.
  package var networkTimeoutSeconds = 10.0
  /// Maximum number of connections of a pool.
  package var connectionCount = 8
  /// Maximum number of callers that wait for a connection.
  package var waitingCallers = 1000
  /// Seconds that a caller waits for a connection, whether others use all of them or the server is unreachable.
  package var connectionWaitSeconds = 10.0
  /// How often a transaction is tried that fails with a serialization failure, a deadlock, or a lost connection.
  package var attempts = 12
  /// Seconds after which the outcome of a COMMIT whose response was lost counts as unknown.
  package var outcomeWaitSeconds = 30.0
  /// What all of this is measured by, except what the server or the kernel does.
  package var clock = Clock.system

  /// Creates settings with the defaults.
  package init(address: PostgresAddress) { self.address = address }

  /// The parameters of a connection, in libpq's order: later ones take precedence.
  var parameters: [(keyword: String, value: String)] {
    let keepalive = max(1, Int(networkTimeoutSeconds / 4))
    return [
      ("application_name", applicationName),
      ("connect_timeout", String(max(2, connectTimeoutSeconds))),
      ("tcp_user_timeout", String(Int(networkTimeoutSeconds * 1000))),
      ("keepalives_idle", String(keepalive)),
      ("keepalives_interval", String(keepalive)),
      ("keepalives_count", "3"),
      ("dbname", address.url),
      ("target_session_attrs", "read-write"),
      ("client_encoding", "UTF8"),
    ]
  }
}
