// Which of the server's lives a connection belongs to.
//
// A transaction's ID isn't durable before something that the transaction wrote is: if the server crashes, or a standby
// takes over that hadn't received it, the ID may be given to another transaction, and pg_xact_status() reports the
// other one's outcome. So an ID may be looked up only if nothing like that happened since. PostgreSQL empties unlogged
// tables in exactly those cases (and not if it is stopped and started properly): this one has a row with a random
// value, which the first connection to find it empty adds.

enum ServerEpoch {
  /// Creates the table; for the migrations.
  static let table = "CREATE UNLOGGED TABLE IF NOT EXISTS server_epoch (id integer PRIMARY KEY, nonce text NOT NULL)"

  /// Returns the epoch of the server that a connection has reached, or nil if the table doesn't exist yet.
  static func read(_ connection: PostgresConnection) throws(PostgresError) -> String? {
    let query = "SELECT nonce FROM server_epoch WHERE id = 1"
    do {
      if let nonce = try connection.run(script: query).value { return nonce }
      try connection.run(
        script: "INSERT INTO server_epoch VALUES (1, gen_random_uuid()::text) ON CONFLICT (id) DO NOTHING")
      return try connection.run(script: query).value
    } catch .statement {
      // No table, no permission for it, or a server that can't write.
      return nil
    }
  }
}
