import Testing

@testable import PostgresStorage

@Suite struct ArgumentNumbersTests {
  @Test(
    "question marks outside of literals, names and comments become numbers",
    arguments: [
      ("SELECT 1", "SELECT 1"),
      ("a = ? AND b = ?", "a = $1 AND b = $2"),
      ("'?' || ?", "'?' || $1"),
      ("'it''s ?' || ?", "'it''s ?' || $1"),
      ("\"a?\" = ?", "\"a?\" = $1"),
      ("-- why?\n?", "-- why?\n$1"),
      ("1 - ? - ?", "1 - $1 - $2"),
    ])
  func numbers(sql: String, numbered: String) { #expect(numberingArguments(of: sql) == numbered) }
}
