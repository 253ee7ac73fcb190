// Brings a database's schema up to date.
//
// `schema_migrations` has a row per migration: its number, its name, and in `oldest` the oldest schema whose program
// may still use the database afterward. Nodes are replaced one by one, so a migration is additive: it adds tables,
// indexes, and columns that are nullable or have a default, which an older program ignores. The program of schema N
// therefore accepts a newer schema, unless a later migration's `oldest` is above N; a migration that removes what an
// older program uses comes one release after the last use, and says so with `oldest`.
//
// Migrations run on a connection of their own that holds an advisory lock, so one node at a time migrates, and the
// others then find nothing left to do. Each runs in a transaction together with its row. It waits briefly for locks on
// tables: behind a waiting ALTER TABLE, all other statements on the table wait too. If it doesn't get them, it is
// rolled back and tried again a little later.

import Storage
import Terms

/// A step from one schema to the next. Once released, it never changes.
package struct PostgresMigration: Sendable {
  /// 1 for the first; without gaps.
  package let number: Int
  /// A description, which is recorded.
  package let name: String
  /// The oldest schema whose program may use the database afterward.
  package let oldest: Int
  /// Statements, separated by semicolons.
  package let script: String

  /// Creates a migration. `oldest` is by default 1 less than `number`, or the number for the first.
  package init(_ number: Int, _ name: String, oldest: Int? = nil, script: String) {
    self.number = number
    self.name = name
    self.oldest = oldest ?? max(1, number - 1)
    self.script = script
  }
}

/// Migrates databases.
package struct PostgresMigrator: Sendable {
  private let migrations: [PostgresMigration]
  private let lockSeconds: Double
  private let attempts: Int
  /// Names the lock: "still" in ASCII.
  private static let lock: Int64 = 0x73_7469_6c6c
  /// Seconds that a node waits for another one's migrations.
  private static let patienceSeconds = 3600.0

  /// Creates a migrator for all migrations, oldest first. A migration waits up to `lockSeconds` for each of its locks,
  /// and is tried up to `attempts` times if it doesn't get one.
  package init(_ migrations: [PostgresMigration], lockSeconds: Double = 2, attempts: Int = 20) {
    precondition(migrations.enumerated().allSatisfy { $0.element.number == $0.offset + 1 }, "migrations have gaps")
    self.migrations = migrations
    (self.lockSeconds, self.attempts) = (lockSeconds, attempts)
  }

  /// Applies the missing migrations, and returns their numbers. If none is missing, costs one connection and query.
  ///
  /// Throws `.newerSchema` if the schema is newer and doesn't support this program any more, `.differentMigration` if
  /// the database was migrated by a different program, and `.wrongEncoding` or `.sharedSession` if it can't be used at
  /// all.
  @discardableResult
  package func migrate(_ settings: PostgresSettings) throws(PostgresError) -> [Int] {
    let connection = try PostgresConnection.checked(settings)
    if try check(connection) == migrations.count { return [] }
    // No limits: the lock may be held, and a migration may run, for long. The session's end releases the lock.
    try connection.set(statementTimeoutSeconds: 0, idleInTransactionTimeoutSeconds: 0)
    try connection.run(script: "SELECT pg_advisory_lock(\(Self.lock))", seconds: Self.patienceSeconds)
    try connection.run(
      script: """
        CREATE TABLE IF NOT EXISTS schema_migrations (
          number integer PRIMARY KEY, name text NOT NULL, oldest integer NOT NULL,
          at timestamptz NOT NULL DEFAULT now());
        \(ServerEpoch.table)
        """)
    // Another node may have migrated in the meantime.
    let present = try check(connection)
    let missing = migrations.filter { $0.number > present }
    for migration in missing { try apply(migration, connection) }
    return missing.map(\.number)
  }

  /// Whether no migration is missing. Changes nothing. Throws as `migrate` does.
  package func isUpToDate(_ settings: PostgresSettings) throws(PostgresError) -> Bool {
    try check(PostgresConnection.checked(settings)) == migrations.count
  }

  /// Returns once the server accepts connections. `pause` waits for some seconds, and returns false to give up; so does
  /// this then. `report` gets why there is no connection: each reason once, and again after a minute. Blocks while it
  /// connects. Throws as `migrate` does if the database can't be used.
  package func waitForServer(
    _ settings: PostgresSettings, pause: (Double) async -> Bool, report: (String) -> Void
  ) async throws(PostgresError) -> Bool {
    var backoff = Backoff(firstSeconds: 0.1, limitSeconds: 5)
    var (reported, silentSeconds) = ("", 0.0)
    while true {
      let reason: String
      do {
        _ = try isUpToDate(settings)
        return true
      } catch {
        switch error {
        case .cannotConnect(let text), .connectionLost(_, let text): reason = text
        default: throw error
        }
      }
      if reason != reported || silentSeconds >= 60 {
        report(reason)
        (reported, silentSeconds) = (reason, 0)
      }
      let seconds = backoff.seconds()
      silentSeconds += seconds
      guard await pause(seconds) else { return false }
    }
  }

  /// Whether the database has exactly this program's migrations. Changes nothing. Throws `.newerSchema` also if a newer
  /// schema still supports this program, and otherwise as `migrate` does.
  package func isSame(_ settings: PostgresSettings) throws(PostgresError) -> Bool {
    let version = try version(PostgresConnection.checked(settings))
    guard version.number <= migrations.count else {
      throw .newerSchema(version: version.number, known: migrations.count, oldest: version.oldest)
    }
    return version.number == migrations.count
  }

  /// Returns the number of this program's migrations that the database has.
  private func check(_ connection: PostgresConnection) throws(PostgresError) -> Int {
    let version = try version(connection)
    return min(version.number, migrations.count)
  }

  /// Returns the number of migrations that the database has, and of the oldest schema whose program may use it.
  private func version(_ connection: PostgresConnection) throws(PostgresError) -> (number: Int, oldest: Int) {
    let rows: [SQLRow]
    do {
      rows = try connection.run("SELECT number, name, oldest FROM schema_migrations ORDER BY number", []).rows
    } catch {
      // There is no such table.
      if error.sqlState == "42P01" { return (0, 0) }
      throw error
    }
    var version = 0
    var oldest = 0
    for row in rows {
      guard case .integer(let number) = row["number"], case .text(let name) = row["name"],
        case .integer(let least) = row["oldest"]
      else { continue }
      if let known = migrations.first(where: { $0.number == Int(number) }), known.name != name {
        throw .differentMigration(number: Int(number), name: name)
      }
      version = max(version, Int(number))
      oldest = max(oldest, Int(least))
    }
    guard migrations.count >= oldest || version <= migrations.count else {
      throw .newerSchema(version: version, known: migrations.count, oldest: oldest)
    }
    return (version, oldest)
  }

  private func apply(_ migration: PostgresMigration, _ connection: PostgresConnection) throws(PostgresError) {
    var backoff = Backoff(firstSeconds: 0.1, limitSeconds: 5)
    for attempt in 1... {
      do {
        try connection.run(script: "BEGIN; SET LOCAL lock_timeout = \(Int(lockSeconds * 1000))")
        try connection.run(script: migration.script, seconds: Self.patienceSeconds)
        _ = try connection.run(
          "INSERT INTO schema_migrations (number, name, oldest) VALUES (?, ?, ?)",
          [.integer(Int64(migration.number)), .text(migration.name), .integer(Int64(migration.oldest))])
        try connection.run(script: "COMMIT")
        return
      } catch {
        if !connection.isBroken { try connection.run(script: "ROLLBACK") }
        // 55P03: a lock wasn't available in time.
        guard attempt < attempts, error.sqlState == "55P03" || error.sqlState == "40P01" else { throw error }
        connection.clock.pause(backoff.seconds())
      }
    }
  }
}
