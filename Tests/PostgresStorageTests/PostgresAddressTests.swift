import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresAddressTests {
  @Test("a description names user, hosts and database, but no password")
  func describes() throws {
    let address = try PostgresAddress(
      "postgres://sam:s%40cret@one,two:5433/audio?sslmode=verify-full&connect_timeout=3")
    #expect("\(address)" == "postgres://sam@one,two:,5433/audio")
    #expect(address.redacted("login as sam with s@cret failed\n") == "login as sam with (password) failed")
    let second = try PostgresAddress("postgresql://one/audio?password=hidden")
    #expect(second.redacted("hidden, hidden") == "(password), (password)")
  }

  @Test(
    "a URL that can't be used is reported without quoting it",
    arguments: [
      ("mysql://x", PostgresAddress.Fault.scheme), ("", .scheme), ("host=one password=x", .scheme),
      ("postgres://sam:p@ss@one/audio", .unescapedCharacter), ("postgres://sam:p/ss@one/audio", .unescapedCharacter),
      ("postgres://sam:p?s@s@one/audio", .unescapedCharacter),
      ("postgres://one:port/audio", .port), ("postgres://one:70000/audio", .port),
      ("postgres://sam:secret/audio", .port),
      ("postgres://one/audio?secret=1", .syntax), ("postgres://sam:p%zz@one/", .syntax),
    ])
  func faults(url: String, fault: PostgresAddress.Fault) {
    #expect(throws: PostgresError.invalidAddress(fault)) { try PostgresAddress(url) }
  }
}
