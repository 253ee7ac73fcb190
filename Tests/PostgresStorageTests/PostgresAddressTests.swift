import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresAddressTests {
  @Test("a description names user, hosts and database, but no password")
  func describes() throws {
    let address = try PostgresAddress(
      "postgres://sam:s%40cret@one,two:5433/audio?sslmode=verify-full&connect_timeout=3")
    #expect("\(address)" == "postgres://sam@one,two:,5433/audio")
    #expect(address.redacted("login as sam with s@cret failed\n") == "login as sam with (password) failed")
    let second = try PostgresAddress("postgresql://localhost/audio?password=hidden")
    #expect(second.redacted("hidden, hidden") == "(password), (password)")
  }

  @Test("a server must accept writes, whatever the URL says before")
  func writable() throws {
    for parameter in ["", "&target_session_attrs=read-write"] {
      let url = "postgres://one,two/audio?sslmode=disable" + parameter
      let settings = PostgresSettings(address: try PostgresAddress(url))
      let words = settings.parameters.map(\.keyword)
      #expect(settings.parameters.last { $0.keyword == "target_session_attrs" }?.value == "read-write")
      // Later ones take precedence, also over a file of services that the URL names.
      #expect(words.firstIndex(of: "target_session_attrs") ?? 0 > words.firstIndex(of: "dbname") ?? 0)
    }
  }

  @Test("a server that only reads isn't connected to")
  func readOnly() throws {
    let database = try TestDatabase()
    try database.run("ALTER DATABASE \(database.name) SET default_transaction_read_only = on")
    do {
      _ = try PostgresConnection(try database.settings())
      Issue.record("it was connected to")
    } catch PostgresError.cannotConnect(let reason) {
      #expect(reason.contains("session is read-only"))
    }
  }

  @Test(
    "without sslmode, only sockets and loopback addresses are accepted",
    arguments: [
      ("/audio", nil), ("%2Frun%2Fpostgresql/audio", nil), ("localhost,127.0.0.9,[::1]/audio", nil),
      ("db/audio", "db"), ("127.0.0.1,10.0.0.2/audio", "10.0.0.2"),
      ("127.0.0.1.example.com/audio", "127.0.0.1.example.com"),
      ("localhost.example.com/audio", "localhost.example.com"), ("[2001:db8::1]/audio", "2001:db8::1"),
      ("[::ffff:10.0.0.1]/audio", "::ffff:10.0.0.1"), ("0.0.0.0/audio", "0.0.0.0"),
      ("localhost/audio?hostaddr=10.0.0.2", "10.0.0.2"), ("db/audio?hostaddr=127.0.0.1", nil),
      ("db/audio?sslmode=disable", nil), ("db/audio?sslmode=verify-full&sslrootcert=%2Fa", nil),
      ("db/audio?sslmode=", "db"), ("/audio?service=it", ""), ("/audio?service=it&sslmode=require", nil),
    ])
  func unprotected(rest: String, host: String?) throws {
    func fault(_ variables: [String: String]) throws -> PostgresAddress.Fault? {
      do throws(PostgresError) { _ = try PostgresAddress("postgres://sam@" + rest) { variables[$0] } } catch {
        guard case .invalidAddress(let fault) = error else { throw error }
        return fault
      }
      return nil
    }
    #expect(try fault([:]) == host.map { .unprotected(host: $0) })
    #expect(try fault(["PGSSLMODE": "require"]) == nil)
    // What the URL leaves open.
    guard rest == "/audio" else { return }
    for (name, host) in [("PGHOST", "db"), ("PGHOSTADDR", "10.0.0.2"), ("PGSERVICE", "it")] {
      #expect(try fault([name: host]) == .unprotected(host: name == "PGSERVICE" ? "" : host))
    }
  }

  @Test(
    "a URL that can't be used is reported without quoting it",
    arguments: [
      ("mysql://x", PostgresAddress.Fault.scheme), ("", .scheme), ("host=one password=x", .scheme),
      ("postgres://sam:p@ss@one/audio", .unescapedCharacter), ("postgres://sam:p/ss@one/audio", .unescapedCharacter),
      ("postgres://sam:p?s@s@one/audio", .unescapedCharacter),
      ("postgres://one:port/audio", .port), ("postgres://one:70000/audio", .port),
      ("postgres://sam:secret/audio", .port),
      ("postgres://one/audio?target_session_attrs=any", .sessionAttributes),
      ("postgres://one,two/audio?target_session_attrs=prefer-standby", .sessionAttributes),
      ("postgres://one/audio?target_session_attrs=primary", .sessionAttributes),
      ("postgres://one/audio?secret=1", .syntax), ("postgres://sam:p%zz@one/", .syntax),
    ])
  func faults(url: String, fault: PostgresAddress.Fault) {
    #expect(throws: PostgresError.invalidAddress(fault)) { try PostgresAddress(url) }
  }
}
