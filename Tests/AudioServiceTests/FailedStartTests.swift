import PostgresStorage
import Testing

@testable import AudioService

/// What the person who starts a node reads if the catalog's server refuses something.
@Suite struct FailedStartTests {
  @Test(
    "a failed start names what the server refused and what to do",
    arguments: [
      (
        PostgresError.statement(PostgresFailure(sqlState: "55P03", message: "canceling statement due to lock timeout")),
        ["another session keeps one of them locked (canceling statement due to lock timeout)", "changed nothing"]
      ),
      (
        .statement(PostgresFailure(sqlState: "42501", message: "permission denied for schema public")),
        ["permission denied for schema public (SQLSTATE 42501)"]
      ),
      (.connectionLost(sqlState: "57P01", reason: "terminating connection"), ["was lost: terminating connection"]),
    ])
  func words(error: PostgresError, parts: [String]) {
    let words = Service.words(forFailedStart: error)
    for part in parts { #expect(words.contains(part), "\(words)") }
    #expect(!words.contains("PostgresFailure"))
  }

  @Test(
    "an address of the catalog that can't be used is refused with the remedy",
    arguments: [
      ("postgres://x@10.0.0.1/x", "Add ?sslmode=verify-full"),
      ("postgres://h/x?target_session_attrs=any", "target_session_attrs must be read-write"),
    ])
  func address(url: String, remedy: String) {
    let error = #expect(throws: PostgresError.self) { try PostgresAddress(url) }
    #expect(error.map { Service.words(forFailedStart: $0) }?.contains(remedy) == true)
  }
}
