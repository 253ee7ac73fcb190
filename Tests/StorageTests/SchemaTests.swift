import Foundation
import GRDB
import PresentRows
import Terms
import Testing

@testable import Storage

@Suite struct SchemaTests {
  let folder: TemporaryFolder
  var path: String { folder("catalog.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test("an empty file becomes a catalog")
  func emptyFile() throws {
    try write("", to: path)
    let catalog = try Catalog(path: path)
    try catalog.insert(sample())
    #expect(try catalog.recordings(limit: 9).count == 1)
  }

  @Test("a catalog keeps its contents when it is reopened")
  func reopening() throws {
    let recording = sample()
    try Catalog(path: path).insert(recording)
    #expect(try Catalog(path: path).recording(recording.id) == recording)
  }

  @Test("noise regions are read back, and none differs from unknown", arguments: [0, 1, 20])
  func noiseRegions(count: Int) throws {
    var recording = sample()
    recording.noiseRegions = (0..<count).map {
      NoiseRegion(start: Double($0) + 0.1, end: Double($0) + 0.6, level: -52.1, score: 0.93)
    }
    try Catalog(path: path).insert(recording)
    #expect(try Catalog(path: path).recording(recording.id) == recording)
    #expect(try Catalog(path: path).recording(recording.id)?.noiseRegions?.count == count)
  }

  @Test("facts about a file with a working copy are read back; only the copy is its sound")
  func workingCopy() throws {
    var recording = sample()
    #expect(recording.soundKey == recording.audioKey)
    recording.media = #"{"codec":"aac"}"#
    #expect(recording.soundKey == nil)
    recording.workingKey = ObjectKey(recording.id, "working.wav")
    recording.workingBytes = 1 << 40
    try Catalog(path: path).insert(recording)
    let found = try #require(try Catalog(path: path).recording(recording.id))
    #expect(found == recording && found.soundKey == ObjectKey(recording.id, "working.wav"))
  }

  @Test("a catalog of the first release is read")
  func firstRelease() throws {
    try DatabaseQueue(path: path).write { try $0.execute(sql: dump) }
    let catalog = try Catalog(path: path)
    let recording = try #require(try catalog.recordings(limit: 9, nameContaining: "TALK").first)
    #expect(recording.name == "Talk.wav")
    for text in ["k.", "AV", "v"] { #expect(try catalog.recordings(limit: 9, nameContaining: text) == [recording]) }
    #expect(recording.format.frames == 79_380_000)
    #expect(recording.warnings == [Warning(code: "truncated", detail: "short")])
    #expect(recording.createdAt.rfc3339 == "2026-11-21T04:05:06.789Z")
    #expect(recording.noiseRegions == nil && recording.media == nil && recording.workingKey == nil)
    #expect(recording.audioKey == ObjectKey(recording.id, "audio.wav") && recording.waveformKey == nil)
    #expect(try catalog.unfinishedJobs().map(\.id.text) == ["0199c0de-0000-7001-8000-000000000001"])
  }

  @Test("rows that name files get their keys, which are then all that counts")
  func keys() throws {
    let id = RecordingID()
    var kept = sample()
    kept = Recording(
      id: id, name: kept.name, format: kept.format, waveformKey: ObjectKey(id, "waveform-1.pyramid"),
      audioKey: ObjectKey(id, "audio.wav"), media: "{}", workingKey: ObjectKey(id, "working-1.wav"))
    let conversion = Conversion(
      recording: id, format: "mp3", key: ObjectKey(id, "converted-1.mp3"), bytes: 3, sha256: "")
    let catalog = try Catalog(path: path)
    try catalog.insert(kept)
    try catalog.keep(conversion, limit: 9)
    try catalog.close()
    // As the version before left it.
    try DatabaseQueue(path: path).write { db in
      try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = '22 keys of files'")
      for column in Schema.keyColumns.keys { try db.execute(sql: "ALTER TABLE recordings DROP COLUMN \(column)") }
      try db.execute(sql: "ALTER TABLE conversions DROP COLUMN key")
    }
    let opened = try Catalog(path: path)
    #expect(try opened.recording(id) == kept)
    #expect(try opened.conversion(of: id, to: "mp3")?.key == conversion.key)
    try opened.pool.write {
      try $0.execute(
        sql:
          "UPDATE recordings SET audio_file = 'a', waveform_file = 'b', working_file = 'c'; UPDATE conversions SET file = 'd'"
      )
    }
    #expect(try opened.recording(id) == kept)
    #expect(try opened.conversion(of: id, to: "mp3")?.key == conversion.key)
  }

  @Test("a catalog of a newer version is refused and left alone")
  func newerVersion() throws {
    var newer = Schema.migrator
    newer.registerMigration("999 from the future") { try $0.execute(sql: "CREATE TABLE future (x)") }
    let recording = sample()
    try Catalog(path: path, migrator: newer).insert(recording)
    #expect(throws: StorageError.newerSchema(path: path)) { try Catalog(path: path) }
    #expect(try Catalog(path: path, migrator: newer).recording(recording.id) == recording)
  }

  @Test("a failed migration leaves the catalog unchanged")
  func failedMigration() throws {
    let recording = sample()
    try Catalog(path: path).insert(recording)
    var broken = Schema.migrator
    broken.registerMigration("999 broken") {
      try $0.execute(sql: "DELETE FROM recordings; INSERT INTO nowhere VALUES (1)")
    }
    #expect(throws: StorageError.self) { try Catalog(path: path, migrator: broken) }
    #expect(try Catalog(path: path).recording(recording.id) == recording)
  }

  @Test("a file that isn't a database is refused")
  func notADatabase() throws {
    try write(String(repeating: "RIFF....WAVE", count: 1000), to: path)
    let error = #expect(throws: StorageError.self) { try Catalog(path: path) }
    #expect(error == .damagedCatalog(path: path, detail: "file is not a database"))
  }

  @Test("commits are synchronous to the disk, in WAL mode, with foreign keys")
  func pragmas() throws {
    let catalog = try Catalog(path: path)
    let values = try catalog.pool.writeWithoutTransaction { db in
      try ["synchronous", "journal_mode", "foreign_keys", "busy_timeout"].map {
        try String.fetchOne(db, sql: "PRAGMA \($0)")
      }
    }
    #expect(values == ["2", "wal", "1", "5000"])
  }

  @Test("after a crash, commits are intact and unfinished jobs are found, oldest first")
  func crash() throws {
    let catalog = try Catalog(path: path)
    let recording = sample()
    let states: [JobState] = [.running, .succeeded, .queued, .failed, .running, .cancelled]
    let jobs = states.map { Job(kind: .waveform, recording: recording.id, state: $0) }
    try catalog.insert(recording, jobs: jobs)
    // What a crash leaves: the files as they are while the catalog is open.
    try FileSystem.makeFolders(folder("crashed"))
    for suffix in ["", "-wal"] {
      try FileManager.default.copyItem(atPath: path + suffix, toPath: folder("crashed/catalog.sqlite" + suffix))
    }
    let restarted = try Catalog(path: folder("crashed/catalog.sqlite"))
    #expect(try restarted.unfinishedJobs() == [jobs[0], jobs[2], jobs[4]])
    #expect(try restarted.recording(recording.id) == recording)
  }

  @Test("an unknown stored word is an error, not a crash")
  func corruption() throws {
    let catalog = try Catalog(path: path)
    let recording = sample()
    try catalog.insert(recording)
    try catalog.pool.write { try $0.execute(sql: "UPDATE recordings SET waveform_state = 'odd'") }
    #expect(throws: StorageError.corrupt(column: "waveform_state", value: "odd")) {
      try catalog.recording(recording.id)
    }
    try catalog.pool.write { try $0.execute(sql: "UPDATE recordings SET waveform_state = 'ready', warnings = '['") }
    #expect(throws: StorageError.self) { try catalog.recording(recording.id) }
  }

  @Test("lists and searches for jobs use an index")
  func indexes() throws {
    let catalog = try Catalog(path: path)
    for (filter, index) in [
      ("state = 'failed' ORDER BY id DESC", "jobs_by_state"),
      ("recording = 'x' ORDER BY id DESC", "jobs_by_recording"),
      ("(recording = 'x' OR output = 'x') AND state IN ('queued', 'running')", "jobs_by_state"),
    ] {
      let plan = try catalog.pool.read { db in
        try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN SELECT * FROM jobs WHERE \(filter)")
          .map { $0["detail"] as String }
      }
      #expect(plan.contains { $0.contains(index) }, "\(plan)")
    }
  }

  /// The first release's file in the format of sqlite3's `.dump`. Never change it.
  private let dump = """
    CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
    INSERT INTO grdb_migrations VALUES ('1 recordings and jobs');
    CREATE TABLE recordings (
      id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, name_folded TEXT NOT NULL, created_at INTEGER NOT NULL,
      bytes INTEGER, sha256 TEXT, container TEXT NOT NULL, codec TEXT NOT NULL, sample_rate INTEGER NOT NULL,
      channels INTEGER NOT NULL, frames INTEGER, estimated_frames INTEGER, duration REAL,
      waveform_state TEXT NOT NULL, waveform_job TEXT, waveform_file TEXT, audio_file TEXT, warnings TEXT NOT NULL,
      derived_recording TEXT, derived_job TEXT, derived_operation TEXT
    ) STRICT;
    INSERT INTO recordings VALUES (
      '0199c0de-0000-7000-8000-000000000000', 'Talk.wav', 'talk.wav', 1795233906789, 317520044, NULL, 'wav',
      'pcm_s16', 44100, 2, 79380000, NULL, 1800.0, 'building', '0199c0de-0000-7001-8000-000000000001', NULL,
      'audio.wav', '[{"code":"truncated","detail":"short"}]', NULL, NULL, NULL);
    CREATE TABLE jobs (
      id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, recording TEXT NOT NULL, output TEXT, state TEXT NOT NULL,
      progress REAL NOT NULL, created_at INTEGER NOT NULL, started_at INTEGER, finished_at INTEGER,
      attempts INTEGER NOT NULL, parameters TEXT NOT NULL, result TEXT, error TEXT
    ) STRICT;
    INSERT INTO jobs VALUES (
      '0199c0de-0000-7001-8000-000000000001', 'waveform', '0199c0de-0000-7000-8000-000000000000', NULL, 'running',
      0.42, 1795233906789, 1795233906800, NULL, 1, '{}', NULL, NULL);
    CREATE INDEX jobs_by_recording ON jobs (recording, id);
    CREATE INDEX jobs_by_state ON jobs (state, id);
    CREATE TABLE heartbeat (id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), beats INTEGER NOT NULL) STRICT;
    """
}
