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
}
