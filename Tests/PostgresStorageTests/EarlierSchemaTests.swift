import Foundation
import PostgresServer
import Testing

@testable import PostgresStorage
@testable import Storage

/// Nodes of the version before go on working while a newer one migrates their tables: see PostgresMigrator.
///
/// `Fixtures/schema-N.json` has what the program of schema N did with its catalog (`CatalogLife`): its migrations, each
/// statement with its arguments and results, and the messages to other nodes. It was written by that program, before it
/// had migration N + 1:
///
///     STILLWAVE_TABLES=remake swift test --filter EarlierSchemaTests
///
/// Here, all that is repeated on the newest schema, before and after tables with rows are migrated.
@Suite(.needsPostgres) struct EarlierSchemaTests {
  /// The first schema that was noted.
  private static let firstNoted = 8
  private static let newest = PostgresSchema.migrations.count
  /// The oldest schema whose programs may use the newest one.
  private static let oldest = PostgresSchema.migrations.map(\.oldest).max() ?? 1
  /// The earlier schemas whose programs may use the newest one.
  private static let earlier = Array(max(firstNoted, oldest)..<max(newest, firstNoted))

  private static func trace(_ schema: Int) throws -> CatalogTrace {
    try #require(
      try CatalogTrace(schema: schema),
      """
      There is no trace of schema \(schema). On the commit before migration \(schema + 1), run
      STILLWAVE_TABLES=remake swift test --filter EarlierSchemaTests, and commit the file.
      """)
  }

  /// What this program does, on its own schema.
  private static let own = Result { () throws -> CatalogTrace in
    let database = try TestDatabase()
    let settings = try database.settings()
    try PostgresSchema.migrator.migrate(settings)
    let engine = PostgresEngine(settings)
    let traced = TracedEngine(engine)
    let life = CatalogLife(traced, settings, engine)
    var columns: [String] = []
    try life.live {
      columns = try columnsInUse(of: database)
      traced.beginNextAct()
    }
    var trace = traced.trace
    trace.migrations = PostgresSchema.migrations.map {
      CatalogTrace.Migration(number: $0.number, name: $0.name, oldest: $0.oldest, script: $0.script)
    }
    (trace.columns, trace.messages) = (columns, life.messages)
    return trace
  }

  /// Returns the columns that have a value in some row.
  private static func columnsInUse(of database: TestDatabase) throws -> [String] {
    let query = try database.run(
      """
      SELECT string_agg(format(
        'SELECT %L WHERE EXISTS (SELECT 1 FROM %I WHERE %I IS NOT NULL)', table_name || '.' || column_name, table_name,
        column_name), ' UNION ALL ' ORDER BY table_name, ordinal_position)
      FROM information_schema.columns WHERE table_schema = 'public'
      """)
    return try database.run(query).split(separator: "\n").map(String.init).sorted()
  }

  @Test("what this program does is noted on request")
  func remake() throws {
    let own = try Self.own.get()
    #expect(own.acts.count == 2 && own.statements.count > 100)
    if let noted = try CatalogTrace(schema: Self.newest) {
      #expect(Set(noted.statements.map(\.sql)) == Set(own.statements.map(\.sql)), "changed since: remake it")
    }
    if ProcessInfo.processInfo.environment["STILLWAVE_TABLES"] == "remake" { try own.write() }
  }

  /// Returns what goes wrong for programs of a schema if their tables, with rows, are migrated up to `migrations`, and
  /// if they begin only then.
  private static func complaints(_ trace: CatalogTrace, _ migrations: [PostgresMigration]) throws -> [String] {
    func day() -> Int { Int(Date().timeIntervalSince1970 / 86_400) }
    let today = day()
    let complaints = try onceComplaints(trace, migrations)
    // Seconds of jobs are counted by day, and the day may have ended meanwhile.
    return complaints.isEmpty || day() == today ? complaints : try onceComplaints(trace, migrations)
  }

  private static func onceComplaints(_ trace: CatalogTrace, _ migrations: [PostgresMigration]) throws -> [String] {
    let before = try TestDatabase().settings()
    try PostgresMigrator(Array(migrations.prefix(trace.schema))).migrate(before)
    let engine = PostgresEngine(before)
    var complaints = trace.repeated(act: 0, on: engine)
    do throws(PostgresError) { try PostgresMigrator(migrations).migrate(before) } catch {
      complaints.append("can't migrate: \(error)")
    }
    complaints += trace.repeated(act: 1, on: engine)
    guard complaints.isEmpty else { return complaints }
    let after = try TestDatabase().settings()
    try PostgresMigrator(migrations).migrate(after)
    return (0...1).flatMap { trace.repeated(act: $0, on: PostgresEngine(after)) }
  }

  @Test("programs of each supported schema read and write the newest one as they did their own", arguments: earlier)
  func statements(schema: Int) throws {
    let trace = try Self.trace(schema)
    #expect(try Self.complaints(trace, PostgresSchema.migrations) == [])
    // And so they do on their own.
    #expect(try Self.complaints(trace, Array(PostgresSchema.migrations.prefix(schema))) == [])
  }

  @Test("migrations that others have applied are as they were", arguments: earlier)
  func migrations(schema: Int) throws {
    for (then, now) in zip(try Self.trace(schema).migrations, PostgresSchema.migrations) {
      #expect(then.number == now.number && then.name == now.name && then.oldest == now.oldest)
      #expect(then.script == now.script, "migration \(now.number) was changed")
    }
  }

  @Test("programs of each supported schema start on the newest one, and those before don't")
  func start() throws {
    let settings = try TestDatabase().settings()
    try PostgresSchema.migrator.migrate(settings)
    for schema in 1..<Self.newest {
      let migrator = PostgresMigrator(Array(PostgresSchema.migrations.prefix(schema)))
      if schema >= Self.oldest {
        #expect(try migrator.migrate(settings) == [], "schema \(schema)")
      } else {
        #expect(throws: PostgresError.newerSchema(version: Self.newest, known: schema, oldest: Self.oldest)) {
          try migrator.migrate(settings)
        }
      }
    }
  }

  @Test("this program starts on the next schema, but not on the one after it, unless that says so")
  func next() throws {
    let next = PostgresSchema.migrations + [PostgresMigration(Self.newest + 1, "next", script: "")]
    let settings = try TestDatabase().settings()
    try PostgresMigrator(next).migrate(settings)
    #expect(try PostgresSchema.migrator.migrate(settings) == [])
    try PostgresMigrator(next + [PostgresMigration(Self.newest + 2, "after", script: "")]).migrate(settings)
    #expect(throws: PostgresError.newerSchema(version: Self.newest + 2, known: Self.newest, oldest: Self.newest + 1)) {
      try PostgresSchema.migrator.migrate(settings)
    }
  }

  @Test("what programs of each supported schema read has values in the rows that this one writes", arguments: earlier)
  func columns(schema: Int) throws {
    let now = Set(try Self.own.get().columns)
    #expect(try Self.trace(schema).columns.filter { !now.contains($0) } == [])
  }

  @Test("programs of each supported schema and this one read each other's messages", arguments: earlier)
  func messages(schema: Int) throws {
    let (then, now) = (try Self.trace(schema).messages, try Self.own.get().messages)
    #expect(then.count > 20 && now.count > 20)
    #expect(try then.compactMap { try MessageShape.loss(reading: $0) } == [])
    #expect(try MessageShape(then).complaints(about: MessageShape(now)) == [])
  }

  // MARK: What would be found

  @Test(
    "a migration that would break programs of the schema before is found",
    arguments: [
      "ALTER TABLE jobs ADD COLUMN priority bigint NOT NULL",
      "ALTER TABLE jobs ADD COLUMN priority bigint NOT NULL DEFAULT 0; ALTER TABLE jobs ALTER priority DROP DEFAULT",
      "ALTER TABLE recordings DROP COLUMN warnings", "ALTER TABLE jobs RENAME COLUMN node TO worker",
      "ALTER TABLE held_keys RENAME TO keys", "DROP TABLE upload_segments",
      "ALTER TABLE recordings ALTER media SET NOT NULL",
      "ALTER TABLE jobs ADD CHECK (kind IN ('waveform', 'denoise'))",
      "ALTER TABLE jobs ADD CHECK (state <> 'cancelled') NOT VALID",
      "ALTER TABLE webhooks ADD CHECK (attempts < 1) NOT VALID",
      "CREATE UNIQUE INDEX one_name ON recordings (tenant, name)",
      "CREATE UNIQUE INDEX one_job ON jobs (recording) WHERE state = 'queued'",
      "ALTER TABLE answers DROP CONSTRAINT answers_pkey; ALTER TABLE answers ADD PRIMARY KEY (scope, key)",
      "ALTER TABLE attempts ADD FOREIGN KEY (folder) REFERENCES recordings",
      "ALTER TABLE jobs ALTER progress TYPE bigint", "ALTER TABLE jobs ALTER attempts TYPE text",
      "DROP TRIGGER recording_counted ON recordings", "DROP TRIGGER job_timed ON jobs",
      "DROP TRIGGER recording_inserted_without_keys ON recordings; ALTER TABLE recordings DROP COLUMN audio_key",
      """
      CREATE FUNCTION begin_again() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN new.progress := 0; RETURN new; END $$;
      CREATE TRIGGER begun_again BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION begin_again()
      """,
    ])
  func breaking(script: String) throws {
    // Where there are no rows, each can be applied.
    try PostgresMigrator(Self.followed(by: script)).migrate(TestDatabase().settings())
    #expect(try Self.complaints(Self.own.get(), Self.followed(by: script)) != [])
  }

  @Test(
    "a migration that adds what programs of the schema before ignore is accepted",
    arguments: [
      "ALTER TABLE jobs ADD COLUMN priority bigint", "ALTER TABLE jobs ADD COLUMN priority bigint NOT NULL DEFAULT 0",
      "CREATE TABLE notes (id bigint PRIMARY KEY, job text REFERENCES jobs ON DELETE CASCADE)",
      "CREATE INDEX jobs_by_client ON jobs (client, state)", "ALTER TABLE recordings SET (fillfactor = 70)",
      "ALTER TABLE jobs ADD CHECK (attempts >= 0)", "DROP INDEX jobs_by_state",
      "CREATE UNIQUE INDEX one_nonce ON attempts (job, nonce)",
      """
      ALTER TABLE jobs ADD COLUMN priority bigint;
      CREATE FUNCTION prioritize() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN new.priority := coalesce(new.priority, 1); RETURN new; END $$;
      CREATE TRIGGER prioritized BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION prioritize()
      """,
    ])
  func harmless(script: String) throws {
    #expect(try Self.complaints(Self.own.get(), Self.followed(by: script)) == [])
  }

  private static func followed(by script: String) -> [PostgresMigration] {
    PostgresSchema.migrations + [PostgresMigration(newest + 1, "next", script: script)]
  }

  /// What a changed program might send.
  @Test(
    "a change of messages that the other version couldn't read is found",
    arguments: [
      (#""state":"#, #""status":"#), (#""recordings":"#, #""changed":"#), (#""attempt":1"#, #""attempt":"1""#),
      (#""jobs":["#, #""jobs":[7,"#), (#""report":"#, #""said":"#), (#""nonce":"#, #""token":"#),
    ])
  func changedMessages(text: String, other: String) throws {
    let own = try Self.own.get().messages
    let changed = own.map { $0.replacing(text, with: other) }
    #expect(own != changed)
    #expect(try MessageShape(own).complaints(about: MessageShape(changed)) != [])
    #expect(try changed.compactMap { try MessageShape.loss(reading: $0) } != [])
  }

  @Test("members that the other version ignores are accepted")
  func moreMembers() throws {
    let own = try Self.own.get().messages
    let more = own.map { $0.replacing(#""node":"#, with: #""version":9,"node":"#) }
    #expect(try MessageShape(own).complaints(about: MessageShape(more)) == [])
    #expect(more.map { CatalogMessage.parse($0)?.message } == own.map { CatalogMessage.parse($0)?.message })
    #expect(try own.compactMap { try MessageShape.loss(reading: $0) } == [])
  }

  // MARK: Nothing is left out

  @Test("every statement of the catalog is part of the trace")
  func everyStatement() throws {
    let traced = try Self.own.get().statements.map { Self.inOneLine($0.sql) }
    let folder = URL(filePath: #filePath).appending(path: "../../../Sources/Storage/Catalog").standardized
    // Statements of `stillwave move`, which runs while no node does, and of repairs by a folder's only process.
    let others = ["Catalog+Move.swift", "Catalog+Healing.swift"]
    var count = 0
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() where !others.contains(name) {
      let source = Self.inOneLine(try String(contentsOf: folder.appending(path: name), encoding: .utf8))
      for literal in source.matches(of: Self.statement) {
        let text = literal.1.trimmingCharacters(in: .whitespaces)
        // What is put into a statement may be anything.
        let parts = text.split(separator: Self.interpolation, omittingEmptySubsequences: false)
        let escaped = parts.map { NSRegularExpression.escapedPattern(for: String($0)) }
        let pattern = try Regex(escaped.joined(separator: ".*"))
        count += 1
        #expect(traced.contains { $0.contains(pattern) }, "\(name): \(text)")
      }
    }
    #expect(count > 100)
  }

  private static var interpolation: Regex<Substring> { /\\\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/ }

  private static var statement: Regex<(Substring, Substring)> {
    /" ?((?:SELECT|INSERT INTO|UPDATE|DELETE FROM) (?:[^"\\]|\\\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)"/
  }

  private static func inOneLine(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }
}
