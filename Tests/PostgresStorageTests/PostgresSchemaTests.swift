import PostgresServer
import Testing

@testable import PostgresStorage
@testable import Storage

@Suite(.needsPostgres) struct PostgresSchemaTests {
  private let database: TestDatabase

  init() throws {
    database = try TestDatabase()
    try PostgresSchema.migrator.migrate(database.settings())
  }

  @Test("PostgreSQL has every table of SQLite's catalog, with the same columns, types and keys")
  func sameColumns() throws {
    let sqlite = try SQLiteConnection(":memory:")
    try Schema.migrate(sqlite, path: "")
    let types = ["TEXT": "text", "INTEGER": "bigint", "REAL": "double precision", "BLOB": "bytea"]
    let expected = try sqlite.rows(
      """
      SELECT t.name || '.' || c.name || ' ' || c.type || CASE WHEN c."notnull" THEN ' not null' ELSE '' END
        || CASE WHEN c.pk > 0 THEN ' key ' || c.pk ELSE '' END
      FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
      WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
        AND t.name NOT LIKE 'recording_names%' AND NOT (t.name = 'recordings' AND c.name = 'number')
      """
    ).map { row in
      types.reduce(row.values[0].description) { $0.replacing(" " + $1.key, with: " " + $1.value) }
    }
    let found = try database.run(
      """
      SELECT c.table_name || '.' || c.column_name || ' ' || c.data_type
        || CASE c.is_nullable WHEN 'NO' THEN ' not null' ELSE '' END
        || coalesce(' key ' || k.ordinal_position, '')
      FROM information_schema.columns AS c
      LEFT JOIN (
        information_schema.key_column_usage AS k JOIN information_schema.table_constraints AS p
          ON p.constraint_name = k.constraint_name AND p.constraint_type = 'PRIMARY KEY'
      ) ON k.table_name = c.table_name AND k.column_name = c.column_name
      WHERE c.table_schema = 'public' AND c.table_name NOT IN ('schema_migrations', 'server_epoch', 'media_folder')
      """
    ).split(separator: "\n").map(String.init)
    #expect(Set(expected).symmetricDifference(found).sorted() == [])
    #expect(expected.count > 100)
  }

  @Test("text is sorted by its bytes in every column")
  func collation() throws {
    let others = try database.run(
      """
      SELECT table_name, column_name FROM information_schema.columns
      WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'
        AND table_name NOT IN ('schema_migrations', 'server_epoch')
      """)
    #expect(others == "")
  }

  @Test("what tenants have is counted, whatever changes it")
  func usage() throws {
    func count() throws -> String { try database.run("SELECT tenant, recordings, bytes FROM usage ORDER BY tenant") }
    try database.run(
      """
      INSERT INTO recordings
        (id, tenant, name, name_folded, created_at, container, codec, sample_rate, channels, waveform_state, warnings,
        version)
      VALUES ('a', 'x', '', '', 0, '', '', 0, 0, '', '', 0), ('b', 'x', '', '', 0, '', '', 0, 0, '', '', 0)
      """)
    #expect(try count() == "x|2|0")
    try database.run("UPDATE recordings SET bytes = 10; UPDATE recordings SET bytes = 11, name = 'n' WHERE id = 'a'")
    #expect(try count() == "x|2|21")
    try database.run("DELETE FROM recordings WHERE id = 'b'")
    #expect(try count() == "x|1|11")
    try database.run(
      """
      INSERT INTO label_tracks
        (id, tenant, recording, name, kind, source, count, words, version, created_at, changed_at, series, bytes)
      VALUES ('l', 'x', 'a', '', '', '', 0, 0, 1, 0, 0, 's', 100);
      UPDATE label_tracks SET bytes = 150;
      INSERT INTO noise_profiles (id, tenant, name, channels, spectrum, version, created_at, changed_at)
      VALUES ('p', 'y', '', 1, '\\x000102', 1, 0, 0);
      """)
    #expect(try count() == "x|1|161\ny|0|3")
    try database.run("UPDATE noise_profiles SET is_deleted = 1; UPDATE noise_profiles SET is_deleted = 1")
    try database.run("DELETE FROM noise_profiles; DELETE FROM label_tracks; DELETE FROM recordings")
    #expect(try count() == "x|0|0\ny|0|0")
  }

  @Test("the time of attempts is counted, without those that the service interrupted")
  func jobSeconds() throws {
    try database.run(
      """
      INSERT INTO jobs (id, tenant, kind, recording, state, progress, created_at, started_at, attempts, parameters)
      VALUES ('a', 'x', '', '', 'running', 0, 0, 1000, 1, ''), ('b', 'x', '', '', 'running', 0, 0, 1000, 1, ''),
        ('c', 'x', '', '', 'running', 0, 0, 1000, 1, ''), ('d', 'x', '', '', 'queued', 0, 0, 1000, 1, '');
      UPDATE jobs SET state = 'succeeded', finished_at = 3500 WHERE id = 'a';
      UPDATE jobs SET state = 'failed', finished_at = 1500 WHERE id = 'b';
      UPDATE jobs SET state = 'queued', interruptions = 1 WHERE id = 'c';
      UPDATE jobs SET state = 'cancelled', finished_at = 9000 WHERE id = 'd';
      """)
    #expect(try database.run("SELECT tenant, milliseconds FROM job_seconds") == "x|3000")
  }

  @Test("searches for names and lists of recordings and jobs use an index, and leases cost none")
  func indexes() throws {
    for (rows, index) in [
      ("recordings WHERE name_folded LIKE '%interview%'", "recordings_by_name"),
      ("recordings WHERE tenant = 'x' ORDER BY id DESC", "recordings_by_tenant"),
      ("jobs WHERE state = 'failed' ORDER BY id DESC", "jobs_by_state"),
      ("jobs WHERE recording = 'x' ORDER BY id DESC", "jobs_by_recording"),
    ] {
      let plan = try database.run("SET enable_seqscan = off; EXPLAIN SELECT * FROM \(rows)")
      #expect(plan.contains(index), "\(plan)")
    }
    let indexed = try database.run("SELECT indexdef FROM pg_indexes WHERE tablename = 'jobs'")
    #expect(!indexed.contains("lease_until") && indexed.contains("jobs_by_state"))
  }
}
