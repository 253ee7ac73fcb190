import Dispatch
import Synchronization
import Testing

@testable import Storage

/// What SQLEngine.swift requires of every engine.
@Suite(.onEveryEngine) struct SQLEngineTests {
  private let folder: TemporaryFolder
  private let engine: any SQLEngine

  init() throws {
    folder = try TemporaryFolder()
    engine = try CatalogEngine.current.open(folder("catalog.sqlite"))
  }

  private func insert(_ id: String, _ due: Int64 = 0) throws {
    try engine.write { _ = try $0.run("INSERT INTO garbage (object, due) VALUES (?, ?)", [id, due]) }
  }

  private func due(_ id: String) throws -> Int64? {
    try engine.read { try $0.first("SELECT due FROM garbage WHERE object = ?", [id]) }
  }

  @Test("values come back as they were bound, and columns by their names")
  func values() throws {
    let profile: [(any SQLConvertible)?] = [
      "id", "", "naïve \u{1F622} '?' \"x\"", nil, Int64.min, Int64.max, [UInt8](0...255), 1, 2, 3,
    ]
    let row = try engine.write { db in
      try db.run(
        """
        INSERT INTO noise_profiles
          (id, tenant, name, recording, created_at, changed_at, spectrum, channels, version, is_deleted)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """, profile)
      return try db.row("SELECT * FROM noise_profiles WHERE id = ?", ["id"])
    }
    let found = try #require(row)
    #expect(found["name"] == .text("naïve \u{1F622} '?' \"x\"") && found["recording"] == .null)
    #expect(found["created_at"] == .integer(.min) && found["changed_at"] == .integer(.max))
    #expect(found["spectrum"] == .blob([UInt8](0...255)) && found["tenant"] == .text(""))
    #expect(found["nonsense"] == nil && found.columns.count == found.values.count)
  }

  @Test("doubles, conditions and sums have the types that the catalog expects")
  func types() throws {
    try insert("a", .max)
    try insert("b", 5)
    let row = try engine.read { db in
      try db.row(
        """
        SELECT EXISTS (SELECT 1 FROM garbage WHERE due = 5) AS has, NOT EXISTS (SELECT 1 FROM garbage) AS empty,
          count(*) AS number, CAST(sum(due / 2) AS bigint) AS total, CAST(0.5 AS double precision) AS half FROM garbage
        """)
    }
    #expect(row?["has"] == .integer(1) && row?["empty"] == .integer(0) && row?["number"] == .integer(2))
    #expect(row?["total"] == .integer(Int64.max / 2 + 2) && row?["half"] == .real(0.5))
  }

  @Test("a body that throws changes nothing, and its error arrives")
  func failure() throws {
    #expect(throws: StorageError.tokenIsSpent) {
      try engine.write { db in
        try db.run("INSERT INTO garbage (object, due) VALUES ('a', 1)")
        throw StorageError.tokenIsSpent
      }
    }
    #expect(try due("a") == nil)
  }

  @Test("a statement's number of changes leaves out rows that a conflict kept")
  func changes() throws {
    try insert("a", 1)
    let counts = try engine.write { db in
      [
        try db.run("INSERT INTO garbage (object, due) VALUES (?, ?) ON CONFLICT (object) DO NOTHING", ["a", 2]),
        try db.run("INSERT INTO garbage (object, due) VALUES (?, ?) ON CONFLICT (object) DO NOTHING", ["b", 2]),
        try db.run("UPDATE garbage SET due = 3"), try db.run("DELETE FROM garbage WHERE due IS NOT DISTINCT FROM 4"),
        try db.run("DELETE FROM garbage WHERE due IS NOT DISTINCT FROM ?", [3]),
      ]
    }
    #expect(counts == [0, 1, 2, 0, 2])
  }

  @Test("a read sees one snapshot, and a read after a write sees the write")
  func snapshot() throws {
    try insert("a", 1)
    let (begun, written) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let engine = engine
    DispatchQueue(label: "writer").async {
      begun.wait()
      _ = try? engine.write { try $0.run("UPDATE garbage SET due = 2") }
      written.signal()
    }
    let seen = try engine.read { db in
      let before: Int64? = try db.first("SELECT due FROM garbage")
      begun.signal()
      written.wait()
      return [before, try db.first("SELECT due FROM garbage")]
    }
    #expect(seen == [1, 1])
    #expect(try due("a") == 2)
    #expect(try engine.readLatest { try $0.first("SELECT due FROM garbage") } == Int64(2))
  }

  @Test("rows are given one by one until the body has enough")
  func eachRow() throws {
    for number in 0..<9 { try insert("\(number)", Int64(number)) }
    var seen: [Int64] = []
    try engine.read { db in
      try db.eachRow("SELECT due FROM garbage WHERE due >= ? ORDER BY due", [2]) { row in
        seen.append(try value(row, "due"))
        return seen.count < 3
      }
    }
    #expect(seen == [2, 3, 4])
  }

  @Test("writes that read what they change lose nothing, from 8 threads", arguments: [SQLIsolation.serializable])
  func increments(isolation: SQLIsolation) throws {
    try insert("count")
    let engine = engine
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<20 {
        do {
          try engine.write(isolation) { db in
            let count: Int64 = try db.first("SELECT due FROM garbage WHERE object = 'count'") ?? 0
            try db.run("UPDATE garbage SET due = ? WHERE object = 'count'", [count + 1])
          }
        } catch {
          Issue.record(error)
        }
      }
    }
    #expect(try due("count") == 160)
  }

  @Test("text is sorted by its bytes")
  func order() throws {
    let names = ["a", "B", "é", "z", "Z", "_", "-", "\u{1F622}", "\u{FF5E}"]
    for name in names { try insert(name) }
    let sorted = try engine.read { db in
      try db.rows("SELECT object FROM garbage ORDER BY object").map { try value($0, "object") as String }
    }
    #expect(sorted == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
  }
}
