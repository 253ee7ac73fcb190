import Glibc
import PostgresServer
import Storage
import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresConnectionTests {
  @Test(
    "a result's values are decoded by their types",
    arguments: [
      ("NULL::bigint", SQLValue.null),
      ("1::smallint", .integer(1)), ("-2::integer", .integer(-2)),
      ("9223372036854775807", .integer(.max)), ("(-9223372036854775808)::bigint", .integer(.min)),
      ("1.5::real", .real(1.5)), ("0.1::double precision", .real(0.1)), ("'-Infinity'::float8", .real(-.infinity)),
      ("'déjà 🎧'", .text("déjà 🎧")), ("''", .text("")), ("'x'::varchar(5)", .text("x")), ("'n'::name", .text("n")),
      ("'{\"a\": 1}'::json", .text("{\"a\": 1}")),
      ("'\\x00ff10'::bytea", .blob([0, 255, 16])), ("''::bytea", .blob([])),
      ("true", .integer(1)), ("EXISTS (SELECT 1 WHERE false)", .integer(0)),
      ("'0195F2C4-0000-7000-8000-00000000abcd'::uuid", .text("0195f2c4-0000-7000-8000-00000000abcd")),
      ("0::numeric", .integer(0)), ("10000::numeric", .integer(10_000)),
      ("-120000000::numeric", .integer(-120_000_000)),
      (
        "(SELECT sum(x) FROM (VALUES (9000000000000000000), (23372036854775807)) AS v (x))",
        .integer(9_023_372_036_854_775_807)
      ),
      ("9223372036854775807::numeric", .integer(.max)), ("(-9223372036854775808)::numeric", .integer(.min)),
      ("9223372036854775808::numeric", .real(9_223_372_036_854_775_808)),
      ("0.001::numeric", .real(0.001)), ("-12345.678::numeric", .real(-12345.678)), ("1e30::numeric", .real(1e30)),
      ("'(70000,300)'::tid", .text("(70000,300)")),
      ("pg_notify('nowhere', '')", .null),
    ])
  func decodes(expression: String, value: SQLValue) throws {
    let connection = try PostgresConnection(TestDatabase.shared.settings())
    #expect(try connection.run("SELECT \(expression) AS it", []).rows.first?["it"] == value)
  }

  @Test("a server is reached over TLS if its certificate and the password are right")
  func overTLS() throws {
    guard let (server, port, authority, other) = try TestServer.overTLS() else { return }
    try server.run("ALTER ROLE stillwave PASSWORD 's%cret'")
    func connect(_ password: String, _ parameters: String) throws(PostgresError) -> PostgresConnection {
      let url = "postgres://stillwave:\(password)@127.0.0.1:\(port)/postgres?\(parameters)"
      return try PostgresConnection(PostgresSettings(address: PostgresAddress(url)))
    }
    let trusted = "sslmode=verify-full&sslrootcert=\(authority)"
    let connection = try connect("s%25cret", trusted)
    let row = try connection.run("SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()", []).rows.first
    #expect(row?["ssl"] == .integer(1) && row?["version"] == .text("TLSv1.3"))
    for (password, parameters, reason) in [
      ("wrong%25", trusted, "password authentication failed"),
      ("s%25cret", "sslmode=verify-full&sslrootcert=\(other)", "certificate verify failed"),
      ("s%25cret", "sslmode=disable", "no pg_hba.conf entry"),
    ] {
      let error = #expect(throws: PostgresError.self) { try connect(password, parameters) }
      guard case .cannotConnect(let text) = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
      #expect(text.contains(reason) && !text.contains("s%cret") && !text.contains("wrong%"), "\(text)")
    }
  }

  @Test("a session has the timeouts of its settings, and its socket those of the network unless the URL has others")
  func sessionTimeouts() throws {
    guard let (server, port, authority, _) = try TestServer.overTLS() else { return }
    try server.run("ALTER ROLE stillwave PASSWORD 'secret'")
    func connect(_ parameters: String) throws -> PostgresConnection {
      let url = "postgres://stillwave:secret@127.0.0.1:\(port)/postgres?sslmode=verify-full&sslrootcert=\(authority)"
      var settings = PostgresSettings(address: try PostgresAddress(url + parameters))
      (settings.statementTimeoutSeconds, settings.idleInTransactionTimeoutSeconds) = (12.5, 7)
      settings.networkTimeoutSeconds = 20
      return try PostgresConnection(settings)
    }
    func option(_ name: Int32, _ connection: PostgresConnection, level: Int32 = Int32(IPPROTO_TCP)) -> Int32 {
      var (value, length) = (Int32(-1), socklen_t(MemoryLayout<Int32>.size))
      _ = unsafe getsockopt(connection.descriptor, level, name, &value, &length)
      return value
    }
    let connection = try connect("")
    for (name, value) in [
      ("statement_timeout", "12500ms"), ("idle_in_transaction_session_timeout", "7s"), ("lock_timeout", "0"),
      ("application_name", "stillwave"),
    ] {
      #expect(try connection.run(script: "SHOW \(name)").value == value, "\(name)")
    }
    #expect(option(TCP_USER_TIMEOUT, connection) == 20_000)
    #expect(option(SO_KEEPALIVE, connection, level: SOL_SOCKET) == 1)
    #expect(option(TCP_KEEPIDLE, connection) == 5 && option(TCP_KEEPINTVL, connection) == 5)
    #expect(option(TCP_KEEPCNT, connection) == 3)
    let other = try connect("&tcp_user_timeout=4000&keepalives_idle=9")
    #expect(option(TCP_USER_TIMEOUT, other) == 4000 && option(TCP_KEEPIDLE, other) == 9)
    #expect(option(TCP_KEEPINTVL, other) == 5)
  }

  @Test("an argument comes back as it was")
  func arguments() throws {
    let connection = try PostgresConnection(TestDatabase.shared.settings())
    try connection.run(script: "CREATE TEMP TABLE kept (i bigint, r double precision, t text, b bytea, u uuid)")
    let id = "0195f2c4-0000-7000-8000-00000000abcd"
    let rows: [[SQLValue]] = [
      [.integer(.min), .real(0.1 + 0.2), .text("o'neil \\ \"?\" \u{1F3A7}"), .blob([0, 39, 92, 255]), .text(id)],
      [.integer(.max), .real(.leastNonzeroMagnitude), .text(""), .blob([]), .text(id)],
      [.null, .null, .null, .null, .null],
      [.integer(0), .real(-.infinity), .text("\u{7F}"), .blob([UInt8](repeating: 7, count: 300_000)), .null],
    ]
    for row in rows {
      _ = try connection.run("DELETE FROM kept", [])
      #expect(try connection.run("INSERT INTO kept VALUES (?, ?, ?, ?, ?)", row).changedRows == 1)
      #expect(try connection.run("SELECT * FROM kept", []).rows.map(\.values) == [row])
    }
    #expect(throws: PostgresError.nulInText) { try connection.run("INSERT INTO kept (t) VALUES (?)", [.text("a\0b")]) }
    #expect(!connection.isBroken)
  }

  @Test("a rejected statement throws its SQLSTATE and constraint, and the connection goes on")
  func rejected() throws {
    let connection = try PostgresConnection(TestDatabase.shared.settings())
    try connection.run(
      script: "CREATE TEMP TABLE once (id bigint CONSTRAINT only_once PRIMARY KEY); INSERT INTO once VALUES (1)")
    let error = #expect(throws: PostgresError.self) { try connection.run("INSERT INTO once VALUES (?)", [.integer(1)]) }
    guard case .statement(let failure) = error else { Issue.record("\(String(describing: error))"); return }
    #expect(failure.sqlState == "23505")
    #expect(failure.constraint == "only_once")
    #expect(throws: PostgresError.self) { try connection.run("SELECT nonsense", []) }
    #expect(try connection.run("SELECT id FROM once", []).rows.count == 1)
    #expect(throws: PostgresError.unsupportedType(column: "i", type: 1186)) {
      try connection.run("SELECT interval '1 s' AS i", [])
    }
  }

  @Test("a prepared statement that became stale is prepared again")
  func stale() throws {
    let connection = try PostgresConnection(TestDatabase.shared.settings())
    try connection.run(script: "CREATE TEMP TABLE growing (id bigint); INSERT INTO growing VALUES (1)")
    _ = try connection.run("SELECT * FROM growing", [])
    try connection.run(script: "ALTER TABLE growing ADD COLUMN name text")
    let error = #expect(throws: PostgresError.self) { try connection.run("SELECT * FROM growing", []) }
    #expect(error?.isRetryable == true)
    #expect(try connection.run("SELECT * FROM growing", []).rows.first?.columns == ["id", "name"])
  }

  @Test("any number of statements can be prepared")
  func many() throws {
    let connection = try PostgresConnection(TestDatabase.shared.settings())
    for number in 0..<600 { #expect(try connection.run("SELECT \(number)::bigint", []).rows.count == 1) }
    let count = try connection.run("SELECT count(*) FROM pg_prepared_statements", []).rows.first?.values.first
    guard case .integer(let prepared) = count else { Issue.record("no count"); return }
    #expect(prepared <= 257)
  }

  @Test("a statement that takes too long is ended by the server, and a server that stops responding is given up")
  func timeouts() throws {
    var settings = try TestDatabase.shared.settings()
    settings.statementTimeoutSeconds = 0.1
    let connection = try PostgresConnection(settings)
    let error = #expect(throws: PostgresError.self) { try connection.run("SELECT pg_sleep(60)", []) }
    #expect(error?.sqlState == "57014")
    #expect(!connection.isBroken)
    #expect(throws: PostgresError.self) {
      try connection.run(script: "SET statement_timeout = 0; SELECT pg_sleep(60)", seconds: 0.1)
    }
    #expect(connection.isBroken)
  }

  @Test("the end of a session breaks its connection")
  func terminated() throws {
    let database = try TestDatabase.shared
    let connection = try PostgresConnection(database.settings())
    #expect(connection.looksAlive())
    try database.run("SELECT pg_terminate_backend(\(connection.backend))")
    let error = #expect(throws: PostgresError.self) { while true { _ = try connection.run("SELECT 1", []) } }
    #expect(error?.isLostConnection == true)
    #expect(!connection.looksAlive())
  }

  @Test("a server that can't be reached, and a database that doesn't exist, are errors with libpq's reason")
  func unreachable() throws {
    let database = try TestDatabase.shared
    for url in [
      "postgres://nobody:hidden@127.0.0.1:1/x", database.server.url(database: "missing") + "?password=hidden",
    ] {
      let error = #expect(throws: PostgresError.self) {
        try PostgresConnection(PostgresSettings(address: PostgresAddress(url)))
      }
      guard case .cannotConnect(let reason) = error else { Issue.record("\(String(describing: error))"); return }
      #expect(!reason.isEmpty && !reason.contains("hidden"))
    }
  }
}
