import Foundation
import PostgresServer
import Synchronization
import Testing

@testable import PostgresStorage
@testable import Storage

/// An engine that must hold what `SQLEngine` says.
struct TestedEngine: CustomTestStringConvertible, Sendable {
  let testDescription: String
  /// Opens an engine with an empty database.
  let open: @Sendable () throws -> any SQLEngine

  static let all = [
    TestedEngine(testDescription: "PostgreSQL") { PostgresEngine(try TestDatabase().settings()) },
    TestedEngine(testDescription: "SQLite") {
      let path = FileManager.default.temporaryDirectory.path + "/stillwave-engine-\(UInt64.random(in: 0...UInt64.max))"
      return try SQLiteEngine(path: path, migrations: [])
    },
  ]
}

@Suite(.needsPostgres) struct EngineConformanceTests {
  private func make(_ tested: TestedEngine, _ tables: String...) throws -> any SQLEngine {
    let engine = try tested.open()
    try engine.write { session in
      for table in tables { _ = try session.run("CREATE TABLE " + table) }
    }
    return engine
  }

  @Test("values of each type come back as they were, and so does NULL", arguments: TestedEngine.all)
  func values(tested: TestedEngine) throws {
    let engine = try make(tested, "kept (number bigint, i bigint, r double precision, t text, b bytea)")
    let rows: [[SQLValue]] = [
      [.integer(0), .integer(.min), .real(-0.1), .text("o'neil ? \u{1F3A7}"), .blob([0, 255])],
      [.integer(1), .integer(.max), .real(1e300), .text(""), .blob([])],
      [.integer(2), .null, .null, .null, .null],
    ]
    try engine.write { session in
      for row in rows { _ = try session.run("INSERT INTO kept VALUES (?, ?, ?, ?, ?)", bound: row) }
    }
    let found = try engine.read { try $0.rows("SELECT * FROM kept ORDER BY number") }
    #expect(found.map(\.values) == rows)
    #expect(found.first?.columns == ["number", "i", "r", "t", "b"])
    #expect(try engine.read { try $0.rows("SELECT * FROM kept WHERE number > 5") }.isEmpty)
  }

  @Test("the common subset of SQL means the same", arguments: TestedEngine.all)
  func subset(tested: TestedEngine) throws {
    // Columns of text are declared so in PostgresSchema; it is SQLite's default.
    let byBytes = tested.testDescription == "PostgreSQL" ? "COLLATE \"C\"" : ""
    let engine = try make(tested, "kept (id text \(byBytes) PRIMARY KEY, x bigint, \"offset\" bigint)")
    let insert = """
      INSERT INTO kept (id, x, "offset") VALUES (?, ?, 0)
      ON CONFLICT (id) DO UPDATE SET x = excluded.x RETURNING x
      """
    for (id, x) in [("a", 1), ("B", 2), ("a", 3), ("\u{E9}", 5)] {
      let returned = try engine.write { try $0.first(insert, [id, x], as: Int.self) }
      #expect(returned == x)
    }
    let changes: [(sql: String, arguments: [SQLValue], count: Int)] = [
      ("INSERT INTO kept (id) VALUES (?) ON CONFLICT (id) DO NOTHING", [.text("a")], 0),
      ("INSERT INTO kept (id, x) VALUES (?, ?), ('?', ?)", [.text("null"), .null, .integer(7)], 2),
      ("UPDATE kept SET x = x + ? WHERE id <> ?", [.integer(0), .text("a")], 4),
      ("DELETE FROM kept WHERE id = '?'", [], 1),
    ]
    for change in changes {
      let count = try engine.write { try $0.run(change.sql, bound: change.arguments) }
      #expect(count == change.count, "\(change.sql)")
    }
    let contains = engine.dialect.contains("id")
    let queries: [(sql: String, arguments: [SQLValue], value: SQLValue)] = [
      ("SELECT EXISTS (SELECT 1 FROM kept WHERE id = ?)", [.text("a")], .integer(1)),
      ("SELECT EXISTS (SELECT 1 FROM kept WHERE id = ?)", [.text("b")], .integer(0)),
      ("SELECT CAST(sum(x) AS bigint) FROM kept", [], .integer(10)),
      ("SELECT count(*) FROM kept", [], .integer(4)),
      ("SELECT count(*) FROM kept WHERE x IS NOT DISTINCT FROM ?", [.null], .integer(1)),
      ("SELECT id FROM kept ORDER BY id LIMIT ?", [.integer(1)], .text("B")),
      ("SELECT coalesce(max(x), ?) FROM kept WHERE id = ?", [.integer(-1), .text("none")], .integer(-1)),
      ("SELECT count(*) FROM kept WHERE \(contains)", [.text("%")], .integer(0)),
      ("SELECT count(*) FROM kept WHERE \(contains)", [.text("ul")], .integer(1)),
    ]
    for query in queries {
      let rows = try engine.read { try $0.rows(query.sql, bound: query.arguments) }
      #expect(rows.map(\.values) == [[query.value]], "\(query.sql)")
    }
  }

  @Test("a body that throws changes nothing, and its error comes back", arguments: TestedEngine.all)
  func throwing(tested: TestedEngine) throws {
    let engine = try make(tested, "kept (id bigint PRIMARY KEY)")
    #expect(throws: StorageError.changedMeanwhile) {
      try engine.write { session in
        try session.run("INSERT INTO kept VALUES (1)")
        throw StorageError.changedMeanwhile
      }
    }
    #expect(throws: StorageError.self) { try engine.write { try $0.run("INSERT INTO kept VALUES (1), (1)") } }
    #expect(throws: StorageError.self) { try engine.write { try $0.run("nonsense") } }
    #expect(try engine.read { try $0.first("SELECT count(*) FROM kept", as: Int.self) } == 0)
  }

  @Test("a read sees one snapshot, can't write, and sees what was written before it", arguments: TestedEngine.all)
  func snapshot(tested: TestedEngine) async throws {
    let engine = try make(tested, "kept (id bigint PRIMARY KEY)")
    let (begun, written) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let counts = Task {
      try await blocking {
        try engine.read { session in
          let count = { try session.first("SELECT count(*) FROM kept", as: Int.self) }
          let before = try count()
          begun.signal()
          written.wait()
          return [before, try count()]
        }
      }
    }
    try await blocking {
      begun.wait()
      try engine.write { _ = try $0.run("INSERT INTO kept VALUES (1)") }
      written.signal()
    }
    #expect(try await counts.value == [0, 0])
    #expect(try engine.read { try $0.first("SELECT count(*) FROM kept", as: Int.self) } == 1)
    #expect(throws: StorageError.self) { try engine.read { _ = try $0.run("DELETE FROM kept") } }
    #expect(try engine.read { try $0.first("SELECT count(*) FROM kept", as: Int.self) } == 1)
  }

  @Test("writes of eight threads that read before they write lose nothing", arguments: TestedEngine.all)
  func lostUpdates(tested: TestedEngine) async throws {
    let engine = try make(tested, "counters (id bigint PRIMARY KEY, value bigint NOT NULL)")
    try engine.write { _ = try $0.run("INSERT INTO counters VALUES (1, 0)") }
    let done = Atomic(0)
    let errors = Mutex<[StorageError]>([])
    await concurrently(8) { _ in
      for _ in 0..<10 {
        do throws(StorageError) {
          try engine.write { session in
            let value = try session.first("SELECT value FROM counters WHERE id = 1", as: Int.self) ?? 0
            try session.run("UPDATE counters SET value = ? WHERE id = 1", [value + 1])
          }
          done.add(1, ordering: .relaxed)
        } catch { errors.withLock { $0.append(error) } }
      }
    }
    #expect(errors.withLock { $0 }.allSatisfy { $0 == .busy })
    let value = try engine.read { try $0.first("SELECT value FROM counters", as: Int.self) }
    #expect(value == done.load(ordering: .relaxed))
  }

  @Test("writes that each check what the other changes don't both succeed", arguments: TestedEngine.all)
  func writeSkew(tested: TestedEngine) async throws {
    let engine = try make(
      tested, "on_call (round bigint, id bigint, is_there bigint NOT NULL, PRIMARY KEY (round, id))")
    try engine.write { session in
      for round in 0..<20 { _ = try session.run("INSERT INTO on_call VALUES (?, 0, 1), (?, 1, 1)", [round, round]) }
    }
    let errors = Mutex<[StorageError]>([])
    await concurrently(2) { index in
      for round in 0..<20 {
        do throws(StorageError) {
          try engine.write { session in
            let count = "SELECT count(*) FROM on_call WHERE round = ? AND is_there = 1"
            guard try session.first(count, [round], as: Int.self) == 2 else { return }
            try session.run("UPDATE on_call SET is_there = 0 WHERE round = ? AND id = ?", [round, index])
          }
        } catch { errors.withLock { $0.append(error) } }
      }
    }
    #expect(errors.withLock { $0 } == [])
    let left = try engine.read { try $0.rows("SELECT round FROM on_call WHERE is_there = 1") }
    #expect(left.count == 20)
  }

  @Test("an error that follows a serialization failure counts as that failure", arguments: TestedEngine.all)
  func disguised(tested: TestedEngine) async throws {
    let engine = try make(tested, "counters (id bigint PRIMARY KEY, value bigint NOT NULL)")
    try engine.write { _ = try $0.run("INSERT INTO counters VALUES (1, 0)") }
    let errors = Mutex<[StorageError]>([])
    await concurrently(2) { _ in
      for _ in 0..<20 {
        do throws(StorageError) {
          try engine.write { session in
            do {
              let value = try session.first("SELECT value FROM counters WHERE id = 1", as: Int.self) ?? 0
              try session.run("UPDATE counters SET value = ? WHERE id = 1", [value + 1])
            } catch { throw StorageError.changedMeanwhile }
          }
        } catch { errors.withLock { $0.append(error) } }
      }
    }
    #expect(errors.withLock { $0 } == [])
    #expect(try engine.read { try $0.first("SELECT value FROM counters", as: Int.self) } == 40)
  }

  @Test("eight that claim with the dialect's lock get each row once", arguments: TestedEngine.all)
  func claims(tested: TestedEngine) async throws {
    let engine = try make(tested, "queue (id bigint PRIMARY KEY, is_taken bigint NOT NULL)")
    try engine.write { session in
      for id in 0..<100 { _ = try session.run("INSERT INTO queue VALUES (?, 0)", [id]) }
    }
    let taken = Mutex<[Int]>([])
    let errors = Mutex<[StorageError]>([])
    await concurrently(8) { _ in
      do throws(StorageError) {
        while let id = try engine.write(
          .statementLocks,
          { session in
            let free = "SELECT id FROM queue WHERE is_taken = 0 ORDER BY id LIMIT 1" + session.dialect.skippingLocked
            return try session.first("UPDATE queue SET is_taken = 1 WHERE id = (\(free)) RETURNING id", as: Int.self)
          })
        {
          taken.withLock { $0.append(id) }
        }
      } catch { errors.withLock { $0.append(error) } }
    }
    #expect(errors.withLock { $0 } == [])
    #expect(taken.withLock { $0.sorted() } == Array(0..<100))
  }

  @Test("rows come one by one, in order, until the body has enough", arguments: TestedEngine.all)
  func eachRow(tested: TestedEngine) throws {
    let engine = try make(tested, "kept (id bigint PRIMARY KEY)")
    try engine.write { session in
      for id in 0..<1000 { _ = try session.run("INSERT INTO kept VALUES (?)", [id]) }
    }
    for (limit, count) in [(2000, 1000), (450, 450), (1, 1)] {
      let seen = try engine.read { session in
        var seen: [Int] = []
        try session.eachRow("SELECT id FROM kept WHERE id >= ? ORDER BY id", [0]) { row in
          if let id = row["id"].flatMap(Int.init) { seen.append(id) }
          return seen.count < limit
        }
        return seen + [try session.first("SELECT count(*) FROM kept", as: Int.self) ?? 0]
      }
      #expect(seen == Array(0..<count) + [1000])
    }
    try engine.close()
  }
}
