import Foundation
import Testing

@testable import Storage

@Suite struct SalvageTests {
  let fixture: MovedFixture
  private var data: DataFolder { fixture.data }
  private var path: String { data.store.catalogPath }
  private static let tables = [
    "answers", "attempts", "conversions", "garbage", "held_keys", "job_seconds", "jobs", "label_chunks", "label_tracks",
    "noise_profiles", "recordings", "spent_tokens", "uploads", "webhooks",
  ]

  init() throws {
    fixture = try MovedFixture()
    try data.execute("PRAGMA wal_checkpoint(TRUNCATE)")
  }

  private func keys(in path: String) throws -> [String: Set<Int64>] {
    let file = try SQLiteConnection(path)
    return try Dictionary(
      uniqueKeysWithValues: Self.tables.map { table in
        (table, Set(try file.rows("SELECT rowid FROM \(table)").compactMap { Int64($0.values[0]) }))
      })
  }

  /// The pages of a table or an index, and the row IDs on each leaf.
  private func pages(of name: String) throws -> [Int] {
    try SQLiteConnection(path).rows("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'", [name])
      .compactMap { Int($0.values[0]) }
  }

  /// Flips a bit of a page's first byte, its kind.
  private func flip(page: Int) throws {
    let file = try FileHandle(forUpdating: URL(filePath: path))
    defer { try? file.close() }
    let offset = UInt64(page - 1) * 4096
    try file.seek(toOffset: offset)
    let byte = try #require(try file.read(upToCount: 1)?.first)
    try file.seek(toOffset: offset)
    try file.write(contentsOf: [byte ^ 0x20])
  }

  @Test("one flipped bit in a table costs that table's rows, which are listed, and no others", arguments: tables)
  func oneTable(_ table: String) throws {
    let before = try keys(in: path)
    #expect(before.allSatisfy { !$0.value.isEmpty })
    try flip(page: try #require(try pages(of: table).first))
    let outcome = try data.repair()
    let after = try keys(in: path)
    // The chunks of a lost track are to be deleted, and a recording that gets its row back also gets a job.
    let followers = ["label_tracks": "garbage", "recordings": "jobs"]
    for other in Self.tables where other != table && other != followers[table] {
      #expect(after[other]?.count == before[other]?.count, "\(other)")
    }
    let lost = outcome.lost.filter { $0.contains("“\(table)”") }
    // Recordings have descriptions.
    #expect(lost.count == (table == "recordings" ? 0 : before[table]?.count), "\(outcome.lost)")
    if table == "label_tracks" {
      while try Catalog(at: path).eraseChunks() {}
      #expect(try keys(in: path)["label_chunks"] == [])
    }
    if table == "answers" {
      #expect(lost == ["The row acme/POST /v1/recordings/key of the table “answers” is lost."])
    }
  }

  @Test("if only an index is hurt, it is built again, and nothing is lost", arguments: tables)
  func index(_ table: String) throws {
    let before = try keys(in: path)
    let index = table == "label_chunks" ? "label_chunks_by_time" : "sqlite_autoindex_\(table)_1"
    try flip(page: try #require(try pages(of: index).first))
    #expect(try data.repair().lost == [])
    #expect(try keys(in: path).mapValues(\.count) == before.mapValues(\.count))
    #expect(try Catalog.inspect(path: path) == .intact)
    // Nothing is counted any more once all of it is gone.
    try data.execute(
      """
      DELETE FROM recordings;
      DELETE FROM conversions;
      DELETE FROM label_tracks;
      UPDATE noise_profiles SET is_deleted = 1;
      """)
    #expect(try SQLiteConnection(path).first("SELECT sum(recordings + abs(bytes)) FROM usage") == 0)
  }

  @Test("if nothing can be read, the folders still have the recordings, and every table is listed")
  func nothing() throws {
    let before = try keys(in: path)
    try write("no catalog", to: path)
    let outcome = try data.repair()
    #expect(try keys(in: path)["recordings"]?.count == before["recordings"]?.count)
    for table in Self.tables {
      #expect(outcome.lost.contains("Rows of the table “\(table)” may be lost that nothing names."))
    }
  }

  @Test(
    "rows between damaged pages are copied, and the others are listed; without an index, only that there were others",
    arguments: [(1, true), (1, false), (1_000_000, true)])
  func severalPages(distance: Int, hasIndex: Bool) throws {
    try data.execute(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
      INSERT INTO spent_tokens (rowid, id, expires_at)
        SELECT (i + 1) * \(distance), 'token ' || i, 9000000000000 FROM n;
      PRAGMA wal_checkpoint(TRUNCATE);
      """)
    let (leaves, index) = (try pages(of: "spent_tokens"), try pages(of: "sqlite_autoindex_spent_tokens_1"))
    #expect(leaves.count > 9)
    for number in [0, 3, 4, 7, leaves.count - 1] { try flip(page: leaves[number]) }
    if !hasIndex { for page in index { try flip(page: page) } }
    let outcome = try data.repair()
    let copied = try #require(try keys(in: path)["spent_tokens"]?.count)
    #expect(copied > 2000 && copied < 3001)
    if hasIndex {
      #expect(copied + outcome.lost.count == 3001)
    } else {
      #expect(outcome.lost == ["Rows of the table “spent_tokens” may be lost that nothing names."])
    }
  }
}
