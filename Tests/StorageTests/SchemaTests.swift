import Foundation
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
      NoiseRegion(Int64($0)..<Int64($0) + 9, sampleRate: 8000, level: -52.1, score: 0.93)
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

  @Test("a catalog of a newer version is refused and left alone")
  func newerVersion() throws {
    let newer = Schema.migrations + ["CREATE TABLE future (x)"]
    let recording = sample()
    try Catalog(path: path, migrations: newer).insert(recording)
    #expect(throws: StorageError.newerSchema(path: path)) { try Catalog(path: path) }
    #expect(try Catalog(path: path, migrations: newer).recording(recording.id) == recording)
  }

  @Test("a second migration changes a catalog once, and a check of it only a copy")
  func secondMigration() throws {
    let recording = sample()
    try Catalog(path: path).insert(recording)
    let next = Schema.migrations + ["ALTER TABLE recordings ADD COLUMN mood TEXT"]
    func mood(_ catalog: Catalog) throws -> String? {
      try catalog.read {
        try $0.row("SELECT coalesce(mood, 'none') AS mood FROM recordings").map { try value($0, "mood") }
      }
    }
    do {
      let view = try CatalogView(path: path, migrations: next)
      #expect(try view.isOlder && mood(view.catalog) == "none")
      #expect(throws: StorageError.self) { try mood(Catalog(path: path)) }
    }
    for _ in 0..<2 { #expect(try mood(Catalog(path: path, migrations: next)) == "none") }
    #expect(try !CatalogView(path: path, migrations: next).isOlder)
  }

  @Test("a catalog from before the first release is refused and left alone")
  func unreleasedVersion() throws {
    try Catalog(path: path).close()
    let file = try SQLiteConnection(path)
    try file.execute("PRAGMA user_version = 0")
    #expect(throws: StorageError.unreleasedSchema(path: path)) { try Catalog(path: path) }
    #expect(throws: StorageError.unreleasedSchema(path: path)) { try CatalogView(path: path) }
    #expect(try file.first("PRAGMA user_version") == 0)
  }

  @Test("a failed migration leaves the catalog unchanged")
  func failedMigration() throws {
    let recording = sample()
    try Catalog(path: path).insert(recording)
    let broken = Schema.migrations + ["DELETE FROM recordings; INSERT INTO nowhere VALUES (1)"]
    #expect(throws: StorageError.self) { try Catalog(path: path, migrations: broken) }
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
    let values = try catalog.sqlite.withWriter { db in
      try ["synchronous", "journal_mode", "foreign_keys", "busy_timeout"].map {
        try db.first("PRAGMA \($0)", as: SQLValue.self)
      }
    }
    #expect(values == [.integer(2), .text("wal"), .integer(1), .integer(5000)])
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
    try catalog.sqlite.withWriter { try $0.execute("UPDATE recordings SET waveform_state = 'odd'") }
    #expect(throws: StorageError.corrupt(column: "waveform_state", value: "odd")) {
      try catalog.recording(recording.id)
    }
    try catalog.sqlite.withWriter {
      try $0.execute("UPDATE recordings SET waveform_state = 'ready', warnings = '['")
    }
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
      let plan = try catalog.sqlite.read { db in
        try db.rows("EXPLAIN QUERY PLAN SELECT * FROM jobs WHERE \(filter)").compactMap { $0["detail"]?.description }
      }
      #expect(plan.contains { $0.contains(index) }, "\(plan)")
    }
  }
}
