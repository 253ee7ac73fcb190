import Dispatch
import Foundation
import PostgresServer
import Storage
import Synchronization
import Testing

@testable import PostgresStorage

@Suite(.needsPostgres) struct PostgresMigratorTests {
  private let database: TestDatabase
  private let migrations = [
    PostgresMigration(1, "first", script: "CREATE TABLE one (id bigint); INSERT INTO one VALUES (1)"),
    PostgresMigration(2, "second", script: "ALTER TABLE one ADD COLUMN name text; INSERT INTO one VALUES (2)"),
    PostgresMigration(3, "third", oldest: 1, script: "CREATE TABLE three (id bigint)"),
  ]

  init() throws { database = try TestDatabase() }

  @Test("of eight that migrate at once, one does it")
  func once() async throws {
    let settings = try database.settings()
    let applied = Mutex<[[Int]]>([])
    let failures = Mutex<[String]>([])
    let migrator = PostgresMigrator(migrations)
    await concurrently(8) { _ in
      do throws(PostgresError) {
        let numbers = try migrator.migrate(settings)
        applied.withLock { $0.append(numbers) }
      } catch { failures.withLock { $0.append("\(error)") } }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(applied.withLock { $0.sorted { $0.count > $1.count } } == [[1, 2, 3]] + Array(repeating: [], count: 7))
    #expect(try database.run("SELECT count(*) FROM one") == "2")
    #expect(
      try database.run("SELECT number, name, oldest FROM schema_migrations ORDER BY 1")
        == "1|first|1\n2|second|1\n3|third|1")
  }

  @Test(
    "a database whose encoding isn't UTF8 is refused, and nothing is made in it", arguments: ["LATIN1", "SQL_ASCII"])
  func encoding(name: String) throws {
    let other = database.name + name.lowercased()
    try database.server.run("CREATE DATABASE \(other) ENCODING '\(name)' TEMPLATE template0 LOCALE 'C'")
    let settings = PostgresSettings(address: try PostgresAddress(database.server.url(database: other)))
    #expect(throws: PostgresError.wrongEncoding(name)) { try PostgresMigrator(migrations).migrate(settings) }
    #expect(try database.server.run("SELECT to_regclass('schema_migrations') IS NULL", database: other) == "t")
  }

  @Test("a pooler must have a session for each client")
  func pooler() throws {
    let server = database.server
    let (shared, own) = (
      try CuttingProxy(to: server.folder, .sharedSession), try CuttingProxy(to: server.folder, .sessionPerClient)
    )
    defer { for proxy in [shared, own] { proxy.stop() } }
    #expect(throws: PostgresError.sharedSession) {
      try PostgresMigrator(migrations).migrate(try database.settings(folder: shared.folder))
    }
    #expect(try PostgresMigrator(migrations).migrate(try database.settings(folder: own.folder)) == [1, 2, 3])
  }

  @Test("who waits for a server gets why it isn't there, each reason once, and goes on when it is")
  func waiting() async throws {
    let name = database.name + "later"
    let settings = PostgresSettings(address: try PostgresAddress(database.server.url(database: name)))
    var (pauses, reports) = (0, [String]())
    let migrator = PostgresMigrator(migrations)
    let isGivenUp = try await !migrator.waitForServer(settings) { _ in
      pauses += 1
      return pauses < 3
    } report: {
      reports.append($0)
    }
    #expect(isGivenUp && reports.count == 1 && reports.first?.contains("does not exist") == true)
    let isThere = try await migrator.waitForServer(settings) { _ in
      pauses += 1
      if pauses == 5 { _ = try? database.server.run("CREATE DATABASE \(name)") }
      return pauses < 9
    } report: { _ in
    }
    #expect(isThere && pauses == 5)
  }

  @Test("only missing migrations are applied")
  func missing() throws {
    let settings = try database.settings()
    #expect(try PostgresMigrator(Array(migrations.prefix(1))).migrate(settings) == [1])
    #expect(try PostgresMigrator(migrations).migrate(settings) == [2, 3])
    #expect(try PostgresMigrator(migrations).migrate(settings) == [])
  }

  @Test("a migration that fails leaves nothing behind")
  func failing() throws {
    let settings = try database.settings()
    let broken = migrations + [PostgresMigration(4, "broken", script: "CREATE TABLE four (id bigint); SELECT nonsense")]
    #expect(throws: PostgresError.self) { try PostgresMigrator(broken).migrate(settings) }
    #expect(try database.run("SELECT max(number) FROM schema_migrations") == "3")
    #expect(try database.run("SELECT to_regclass('four') IS NULL") == "t")
    #expect(try PostgresMigrator(migrations).migrate(settings) == [])
  }

  /// Changes a table that others use. Counts how often it is tried: sequences aren't rolled back.
  private let changing = PostgresMigration(
    4, "changing",
    script: """
      CREATE TABLE four AS SELECT current_setting('lock_timeout') AS lock_timeout;
      SELECT nextval('tries');
      ALTER TABLE one ADD COLUMN more text;
      """)

  /// A session that keeps a table from being changed, like a program that makes a copy of it.
  private func lockingSession() throws -> PostgresConnection {
    var settings = try database.settings()
    settings.idleInTransactionTimeoutSeconds = 0
    let session = try PostgresConnection(settings)
    try session.run(script: "CREATE SEQUENCE tries")
    try session.run(script: "BEGIN; LOCK TABLE one IN ACCESS SHARE MODE")
    return session
  }

  @Test("a migration that doesn't get its locks is tried again, and lets others use the table in between")
  func locked() throws {
    let settings = try database.settings()
    try PostgresMigrator(migrations).migrate(settings)
    let session = try lockingSession()
    let migrator = PostgresMigrator(migrations + [changing], lockSeconds: 0.05)
    let migrated = Mutex<Result<[Int], any Error>?>(nil)
    let hasEnded = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      migrated.withLock { $0 = Result { try migrator.migrate(settings) } }
      hasEnded.signal()
    }
    try database.wait(for: "SELECT last_value FROM tries") { Int($0) ?? 0 >= 3 }
    // It would wait behind a migration that waits.
    #expect(try database.run("SELECT count(*) FROM one") == "2")
    try session.run(script: "COMMIT")
    hasEnded.wait()
    #expect(try migrated.withLock { $0 }?.get() == [4])
    #expect(try database.run("SELECT lock_timeout FROM four") == "50ms")
    #expect(try database.run("SELECT count(more) FROM one") == "0")
  }

  @Test("a migration that never gets its locks fails and leaves nothing behind")
  func lockedForever() throws {
    let settings = try database.settings()
    try PostgresMigrator(migrations).migrate(settings)
    let session = try lockingSession()
    let error = #expect(throws: PostgresError.self) {
      try PostgresMigrator(migrations + [changing], lockSeconds: 0.01, attempts: 3).migrate(settings)
    }
    guard case .statement(let failure) = error else { Issue.record("\(String(describing: error))"); return }
    #expect(failure.sqlState == "55P03" && failure.message == "canceling statement due to lock timeout")
    #expect(try database.run("SELECT last_value FROM tries") == "3")
    #expect(try database.run("SELECT max(number) FROM schema_migrations") == "3")
    #expect(try database.run("SELECT to_regclass('four') IS NULL") == "t")
    #expect(try PostgresMigrator(migrations).migrate(settings) == [], "the version before works on")
    try session.run(script: "COMMIT")
    #expect(try PostgresMigrator(migrations + [changing]).migrate(settings) == [4])
    #expect(try database.run("SELECT lock_timeout FROM four") == "2s")
  }

  @Test("a newer schema is accepted as long as its migrations support this program")
  func newer() throws {
    let settings = try database.settings()
    try PostgresMigrator(migrations).migrate(settings)
    // 2 requires 1, and 3 requires 1.
    #expect(try PostgresMigrator(Array(migrations.prefix(2))).migrate(settings) == [])
    #expect(try PostgresMigrator(Array(migrations.prefix(1))).migrate(settings) == [])
    let later = migrations + [PostgresMigration(4, "fourth", script: ""), PostgresMigration(5, "fifth", script: "")]
    try PostgresMigrator(later).migrate(settings)
    #expect(try PostgresMigrator(Array(later.prefix(4))).migrate(settings) == [])
    #expect(throws: PostgresError.newerSchema(version: 5, known: 3, oldest: 4)) {
      try PostgresMigrator(migrations).migrate(settings)
    }
  }

  @Test("a database with other migrations is refused")
  func different() throws {
    let settings = try database.settings()
    try PostgresMigrator([PostgresMigration(1, "other", script: "")]).migrate(settings)
    #expect(throws: PostgresError.differentMigration(number: 1, name: "other")) {
      try PostgresMigrator(migrations).migrate(settings)
    }
  }
}
