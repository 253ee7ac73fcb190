import Foundation
import PresentRows
import Testing

@testable import Storage

@Suite struct DamagedCatalogTests {
  let folder: TemporaryFolder
  var path: String { folder("catalog.sqlite") }

  init() throws {
    folder = try TemporaryFolder()
  }

  @discardableResult
  private func fill(_ count: Int = 20) throws -> [Recording] {
    let recordings = (0..<count).map { sample("talk \($0).wav") }
    let catalog = try Catalog(path: path)
    for recording in recordings { try catalog.insert(recording, jobs: [Job(kind: .waveform, recording: recording.id)]) }
    try catalog.close()
    return recordings
  }

  // MARK: The whole file

  @Test("a missing or empty file is new; a closed catalog is intact")
  func conditions() throws {
    #expect(try Catalog.inspect(path: path) == .new)
    try write("", to: path)
    #expect(try Catalog.inspect(path: path) == .new)
    try fill()
    #expect(try Catalog.inspect(path: path) == .intact)
  }

  @Test("a catalog with another program's tables, or without one of its own, is damaged")
  func strangeTables() throws {
    try fill()
    try SQLiteConnection(path).execute("DROP TABLE jobs")
    #expect(throws: StorageError.damagedCatalog(path: path, detail: "its tables are missing")) {
      try Catalog.inspect(path: path)
    }
  }

  @Test("a catalog that lacks a column is damaged")
  func missingColumn() throws {
    try fill()
    try SQLiteConnection(path).execute("ALTER TABLE recordings RENAME COLUMN sha256 TO sha25")
    #expect(throws: StorageError.damagedCatalog(path: path, detail: "table recordings lacks columns")) {
      try Catalog(path: path)
    }
  }

  @Test("a catalog is damaged if the statement of one of its tables is")
  func damagedStatement() throws {
    try fill()
    let file = try SQLiteConnection(path)
    try file.execute("PRAGMA writable_schema = ON")
    try file.execute("UPDATE sqlite_schema SET sql = replace(sql, 'content_rowid', 'content_rowid0')")
    try file.close()
    #expect(throws: StorageError.damagedCatalog(path: path, detail: #"unrecognized option: "content_rowid0""#)) {
      try Catalog(path: path)
    }
  }

  @Test("a truncated catalog is damaged, wherever it is cut", arguments: [1, 100, 4095, 4096, 20_000])
  func truncated(length: Int) throws {
    try fill()
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try handle.truncate(atOffset: UInt64(length))
    let error = #expect(throws: StorageError.self) { try Catalog.inspect(path: path) }
    guard case .damagedCatalog(path, _) = error else {
      return #expect(error == .damagedCatalog(path: path, detail: ""))
    }
  }

  @Test("a check that takes too long is interrupted and says so")
  func timeLimit() throws {
    let catalog = try Catalog(path: path)
    // The file is large enough for the interruption to come before its end.
    try catalog.sqlite.write { db in
      try db.run("CREATE TABLE ballast (bytes BLOB)")
      for _ in 0..<64 { try db.run("INSERT INTO ballast VALUES (zeroblob(4194304))") }
    }
    try catalog.close()
    #expect(try Catalog.inspect(path: path, withinSeconds: 0) == .unverified)
  }

  @Test("after close(), the catalog's main file contains every row")
  func closing() throws {
    let recordings = try fill()
    let copy = folder("copy.sqlite")
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    #expect(try Catalog(path: copy).recordings(limit: 100).count == recordings.count)
  }

  // MARK: While it is open

  @Test(
    "a catalog whose file or log is removed or replaced accepts no writes", arguments: ["", "-wal"], [true, false])
  func replaced(suffix: String, isReplaced: Bool) throws {
    let catalog = try Catalog(path: path)
    try catalog.insert(sample())
    try FileManager.default.moveItem(atPath: path + suffix, toPath: folder("away"))
    if isReplaced { try FileManager.default.copyItem(atPath: folder("away"), toPath: path + suffix) }
    #expect(throws: StorageError.catalogReplaced(path: path)) { try catalog.insert(sample()) }
    #expect(throws: StorageError.catalogReplaced(path: path)) { try catalog.check() }
  }

  @Test("once SQLite has found damage, nothing more is read or written")
  func damagedWhileOpen() throws {
    let recordings = try fill(400)
    let catalog = try Catalog(path: path)
    // Overwrites the headers of the table's pages, except the first few of the file.
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    let length = try handle.seekToEnd()
    for page in stride(from: UInt64(8), to: length / 4096, by: 1) {
      try handle.seek(toOffset: page * 4096)
      handle.write(Data(repeating: 0xFF, count: 64))
    }
    var errors = 0
    for recording in recordings {
      do { _ = try catalog.recording(recording.id) } catch {
        guard case .damagedCatalog = error else {
          Issue.record(error)
          continue
        }
        errors += 1
      }
    }
    #expect(errors > 0)
    let refusal = StorageError.damagedCatalog(path: path, detail: "damage was found while the service ran")
    #expect(throws: refusal) { try catalog.insert(sample()) }
    #expect(throws: refusal) { try catalog.jobs(limit: 1) }
    #expect(throws: refusal) { try catalog.check() }
  }

  // MARK: Single rows

  /// Changes a row without the checks of STRICT, because a flipped bit doesn't respect a column's type.
  private func damage(_ statement: String) throws {
    try setSchema(from: ") STRICT", to: ")")
    try SQLiteConnection(path).execute(statement)
    try setSchema(from: ")", to: ") STRICT")
  }

  private func setSchema(from old: String, to new: String) throws {
    let changed = try SQLiteConnection(path, settings: "PRAGMA writable_schema = ON").run(
      """
      UPDATE sqlite_master SET sql = substr(sql, 1, length(sql) - ?) || ?
      WHERE type = 'table' AND name IN ('recordings', 'jobs') AND sql LIKE '%' || ?
      """, [old.count, new, old])
    guard changed == 2 else { throw StorageError.corrupt(column: "sql", value: old) }
  }

  @Test(
    "a row with an invalid value is an error, but doesn't hide other rows",
    arguments: [
      "name = x'ff00ff'", "created_at = 9223372036854775807", "created_at = -9223372036854775808", "sample_rate = 0",
      "sample_rate = -1", "channels = 9223372036854775807", "frames = -1",
      "waveform_state = 'redy'", "warnings = '{'", "audio_key = '../../secret'", "audio_key = ''",
      "audio_key = 'recordings/' || id || '/../audio.wav'", "audio_key = 'recordings/' || id || '/'",
      "audio_key = 'recordings/01a215cf-db7b-74a1-a21c-8ccffb19512d/audio.wav'", "audio_key = 'recordings/x/audio.wav'",
      "noise_regions = '[1]'",
      #"noise_regions = '[{"frames":[-1,9],"sampleRate":8000,"level":-50,"score":1}]'"#,
      #"noise_regions = '[{"frames":[9,9],"sampleRate":8000,"level":-50,"score":1}]'"#,
      "derived_operation = 'denoise', derived_recording = 'x'", "sha256 = 'short'",
      "waveform_job = 'x'", "id = 'x'",
    ])
  func corruptRow(change: String) throws {
    let recordings = try fill(3)
    try damage("UPDATE recordings SET \(change) WHERE id = '\(recordings[1].id)'")
    let catalog = try Catalog(path: path)
    #expect(try catalog.recordings(limit: 9).count == 2)
    _ = try? catalog.recording(recordings[1].id)
    try catalog.insert(sample())
  }

  @Test(
    "a job with an invalid value is skipped",
    arguments: [
      "state = 'dancing'", "kind = ''", "progress = 7", "attempts = -1", "created_at = 9223372036854775807",
      "started_at = -9223372036854775808", "recording = 'x'",
    ])
  func corruptJob(change: String) throws {
    try fill(3)
    try damage("UPDATE jobs SET \(change) WHERE rowid = 2")
    let catalog = try Catalog(path: path)
    #expect(try catalog.jobs(limit: 9).count == 2)
    #expect(try catalog.unfinishedJobs().count == 2)
  }
}
