// What a server's answers can't show later, and would corrupt or stop a service.
//
// A pooler that shares sessions between transactions (PgBouncer's pool_mode = transaction) gives each transaction
// whatever session is free. LISTEN, advisory locks and prepared statements belong to a session, so notifications would
// be lost and migrations could run twice. Such a pooler gives its clients process IDs of its own, other than their
// sessions', and two idle clients the same session, which never happens on direct connections or with a session for
// each client.

extension PostgresConnection {
  /// Connects to a server that a catalog can be on. Throws `.wrongEncoding` or `.sharedSession` if it can't be.
  static func checked(_ settings: PostgresSettings) throws(PostgresError) -> PostgresConnection {
    let connection = try PostgresConnection(settings)
    let encoding = try connection.run(script: "SELECT getdatabaseencoding()").value ?? ""
    guard encoding == "UTF8" else { throw .wrongEncoding(encoding) }
    let session = try connection.session()
    guard session != connection.backend else { return connection }
    do {
      if try PostgresConnection(settings).session() != session { return connection }
    } catch {
      guard case .statement(let failure) = error, failure.namesOtherSession else { throw error }
    }
    throw .sharedSession
  }

  /// The process ID of the session that this statement ran in.
  private func session() throws(PostgresError) -> Int32? {
    try run(script: "SELECT pg_backend_pid()").value.flatMap { Int32($0) }
  }
}
