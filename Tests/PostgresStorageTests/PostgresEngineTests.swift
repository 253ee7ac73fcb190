import Storage
import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresEngineTests {
  private let engine: PostgresEngine

  init() throws {
    let database = try TestDatabase()
    try database.run("CREATE TABLE kept (id text PRIMARY KEY, flag bigint NOT NULL, bytes bytea)")
    engine = PostgresEngine(try database.settings())
  }

  @Test("what is written is read back")
  func writes() throws {
    let changed = try engine.write { session in
      try session.run(
        "INSERT INTO kept (id, flag, bytes) VALUES (?, ?, ?), (?, ?, ?)",
        ["a?", true, [1, 0] as [UInt8], "b", false, nil])
    }
    #expect(changed == 2)
    let rows = try engine.read { try $0.rows("SELECT * FROM kept ORDER BY id") }
    #expect(rows.map(\.values) == [[.text("a?"), .integer(1), .blob([1, 0])], [.text("b"), .integer(0), .null]])
    try engine.close()
    #expect(throws: StorageError.unreachable(detail: "the pool is closed")) { try engine.read { _ in } }
  }

  @Test("a body's own error comes back, and nothing is changed")
  func throwing() throws {
    #expect(throws: StorageError.changedMeanwhile) {
      try engine.write { session in
        try session.run("INSERT INTO kept (id, flag) VALUES (?, ?)", ["x", 1])
        throw StorageError.changedMeanwhile
      }
    }
    #expect(try engine.read { try $0.first("SELECT count(*) FROM kept", as: Int.self) } == 0)
  }

  @Test("the server's errors come back with their SQLSTATE")
  func rejected() {
    let error = #expect(throws: StorageError.self) { try engine.write { try $0.run("INSERT INTO nowhere VALUES (1)") } }
    guard case .server(state: "42P01", _)? = error else { Issue.record("\(String(describing: error))"); return }
  }
}
