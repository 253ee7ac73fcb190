import PostgresServer
import Storage
import Synchronization
import Testing

@testable import PostgresStorage

/// Races that SQLite's single writer hides. At READ COMMITTED with 8 threads and no locks, checking before inserting
/// created two conversions for 200 of 200 recordings, and left 114 of 200 jobs whose recording had been deleted.
@Suite(.needsPostgres) struct RaceTests {
  private let database: TestDatabase
  private let pool: PostgresPool
  private static let count = 200

  init() throws {
    database = try TestDatabase()
    pool = PostgresPool(try database.settings())
    try database.run(
      """
      CREATE TABLE recordings (id text PRIMARY KEY);
      CREATE TABLE jobs (id text PRIMARY KEY, recording text NOT NULL, kind text NOT NULL, parameters text NOT NULL,
        state text NOT NULL DEFAULT 'queued');
      CREATE UNIQUE INDEX one_conversion ON jobs (recording, parameters)
        WHERE kind = 'convert' AND state IN ('queued', 'running');
      INSERT INTO recordings SELECT 'r' || x FROM generate_series(0, \(Self.count - 1)) AS s (x);
      """)
  }

  @Test(
    "eight that want the same conversion at once get one job", arguments: [SQLIsolation.serializable, .statementLocks])
  func conversions(isolation: SQLIsolation) async throws {
    let failures = Atomic(0)
    let jobs = Mutex<[String: Set<String>]>([:])
    await concurrently(8) { [pool] thread in
      for number in 0..<Self.count {
        do {
          let job = try pool.write(TransactionMode(isolation)) { session -> String? in
            let recording = "r\(number)"
            let find = "SELECT id FROM jobs WHERE recording = ? AND kind = 'convert' AND state IN ('queued', 'running')"
            if let found = try session.first(find, [recording], as: String.self) { return found }
            _ = try session.run(
              """
              INSERT INTO jobs (id, recording, kind, parameters) VALUES (?, ?, 'convert', 'mp3')
              ON CONFLICT (recording, parameters) WHERE kind = 'convert' AND state IN ('queued', 'running') DO NOTHING
              """, ["j\(number)-\(thread)", recording])
            return try session.first(find, [recording], as: String.self)
          }
          jobs.withLock { _ = $0["r\(number)", default: []].insert(job ?? "none") }
        } catch { failures.add(1, ordering: .relaxed) }
      }
    }
    #expect(failures.load(ordering: .relaxed) == 0)
    #expect(jobs.withLock { $0.values.count { $0.count != 1 } } == 0)
    #expect(try database.run("SELECT count(*), count(DISTINCT recording) FROM jobs") == "\(Self.count)|\(Self.count)")
  }

  @Test(
    "a job that is inserted while its recording is deleted leaves no orphan",
    arguments: [SQLIsolation.serializable, .statementLocks])
  func orphans(isolation: SQLIsolation) async throws {
    let failures = Atomic(0)
    let inserted = Atomic(0)
    // Only READ COMMITTED needs the lock; in serializable transactions, it makes one of the two wait instead of fail.
    let lock = SQLDialect.postgres.holdingRows
    await concurrently(8) { [pool] thread in
      for number in 0..<Self.count {
        do {
          if (number + thread) % 8 == 0 {
            try pool.write(TransactionMode(isolation)) { session in
              _ = try session.run("DELETE FROM jobs WHERE recording = ?", ["r\(number)"])
              _ = try session.run("DELETE FROM recordings WHERE id = ?", ["r\(number)"])
              _ = try session.run("DELETE FROM jobs WHERE recording = ?", ["r\(number)"])
            }
          } else {
            let count = try pool.write(TransactionMode(isolation)) { session in
              guard try session.row("SELECT id FROM recordings WHERE id = ?" + lock, ["r\(number)"]) != nil else {
                return 0
              }
              return try session.run(
                "INSERT INTO jobs (id, recording, kind, parameters) VALUES (?, ?, 'denoise', '')",
                ["j\(number)-\(thread)", "r\(number)"])
            }
            inserted.add(count, ordering: .relaxed)
          }
        } catch { failures.add(1, ordering: .relaxed) }
      }
    }
    #expect(failures.load(ordering: .relaxed) == 0)
    #expect(try database.run("SELECT count(*) FROM recordings") == "0")
    #expect(try database.run("SELECT count(*) FROM jobs") == "0")
    #expect(inserted.load(ordering: .relaxed) > 0)
  }

  @Test("eight that claim at once get each job once, without waiting for each other")
  func claims() async throws {
    try database.run(
      """
      INSERT INTO jobs SELECT 'c' || x, 'r' || x, 'waveform', '' FROM generate_series(0, \(Self.count - 1)) AS s (x)
      """)
    let claimed = Mutex<[String]>([])
    let failures = Atomic(0)
    await concurrently(8) { [pool] _ in
      do {
        while let job = try pool.write(
          .statementLocks,
          {
            try $0.first(
              """
              UPDATE jobs SET state = 'running' WHERE id = (
                SELECT id FROM jobs WHERE state = 'queued' ORDER BY id LIMIT 1\(SQLDialect.postgres.skippingLocked)
              ) RETURNING id
              """, as: String.self)
          })
        {
          claimed.withLock { $0.append(job) }
        }
      } catch { failures.add(1, ordering: .relaxed) }
    }
    #expect(failures.load(ordering: .relaxed) == 0)
    #expect(claimed.withLock { $0.count } == Self.count)
    #expect(claimed.withLock { Set($0).count } == Self.count)
  }
}
