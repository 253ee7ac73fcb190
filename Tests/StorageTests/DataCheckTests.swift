import Foundation
import PresentRows
import Testing

@testable import Storage

@Suite struct DataCheckTests {
  let data: DataFolder

  init() throws { data = try DataFolder() }

  /// The SHA-256 of the text “file”.
  private static let digestOfFile = "3b9c358f36f0a31b6ad3e14f309c7cf198ac9246e8316f9ce543d5b19ac02b80"

  private func codes(_ findings: [DataCheck.Finding]) -> [String] { findings.map(\.code).sorted() }

  @Test("a check changes nothing in the data folder of a stopped service, whatever it finds", arguments: [true, false])
  func readsOnly(isDamaged: Bool) throws {
    if isDamaged { try data.execute("DROP TABLE jobs") }
    for folder in ["orphaned", "uploads"] { try FileSystem.remove(data.path + "/" + folder) }
    for name in ["", "/catalog.sqlite", "/recordings"] { #expect(unsafe chmod(data.path + name, 0o755) == 0) }
    let before = try data.everything()
    #expect(codes(try data.check().problems) == (isDamaged ? ["catalog_damaged"] : []))
    #expect(try data.everything() == before)
  }

  @Test("a check changes nothing beside a running service or after a crash", arguments: [true, false])
  func readsOnlyBesideAService(isRunning: Bool) throws {
    if isRunning { try data.store.claim() }
    let catalog = try Catalog(path: data.store.catalogPath)
    try catalog.update(data.recordings[0].id) { $0.name = "renamed.wav" }
    if !isRunning {
      let copies = ["", "-wal"].map { (data.folder("copy" + $0), data.store.catalogPath + $0) }
      for (copy, path) in copies { try FileSystem.copy(path, to: copy) }
      try catalog.close()
      for (copy, path) in copies { try FileSystem.rename(copy, to: path) }
    }
    var before = try data.everything()
    let report = try data.check()
    #expect(report.recordings == 3)
    #expect(codes(report.problems) == ["description_outdated"])
    var after = try data.everything()
    // The index of the log contains the locks and marks of readers.
    for key in ["data/catalog.sqlite-shm"] { (before[key], after[key]) = (nil, nil) }
    #expect(after == before)
    if isRunning { try catalog.close() }
  }

  @Test("an empty folder stays empty and has no problems")
  func emptyFolder() throws {
    let folder = try TemporaryFolder()
    let report = try DataCheck { _ in nil }.run(in: MediaStore(lookingAt: folder.path))
    #expect(report == DataCheck.Report())
    #expect(try folder.contents() == [])
  }

  @Test("recordings with a missing or empty catalog mean that the catalog is lost", arguments: [true, false])
  func lostCatalog(isEmpty: Bool) throws {
    try FileSystem.remove(data.store.catalogPath)
    if isEmpty { try write("", to: data.store.catalogPath) }
    #expect(codes(try data.check().problems) == ["catalog_lost"])
  }

  @Test("a catalog of a newer version is refused with its path and left alone")
  func newerVersion() throws {
    try data.execute("PRAGMA user_version = 999")
    let before = try data.everything()
    #expect(throws: StorageError.newerSchema(path: data.store.catalogPath)) { try data.check() }
    #expect(try data.everything() == before)
  }

  @Test("a check, and a start, read the catalog as often for twenty recordings as for one")
  func readsInBatches() throws {
    let reads = try [1, 20].map { count in
      let data = try DataFolder(count)
      let catalog = try Catalog(path: data.store.catalogPath)
      let before = catalog.readCount
      let report = try DataCheck { _ in nil }.run(CheckedStore(data.store, isLive: false), of: catalog)
      #expect(report.recordings == count && report.isSound && report.notes.isEmpty)
      #expect(Reconciliation(catalog: catalog, store: data.store).run(verified: true).failures.isEmpty)
      return catalog.readCount - before
    }
    #expect(reads[0] == reads[1])
  }

  /// Gives the first recording a row of a conversion, whose file `converted-1.mp3` would contain “file”. Returns the
  /// recording's ID.
  private func keepConversion() throws -> RecordingID {
    let catalog = try Catalog(path: data.store.catalogPath)
    let id = data.recordings[0].id
    let made = Conversion(
      recording: id, format: "mp3", key: ObjectKey(id, "converted-1.mp3"), bytes: 4, sha256: Self.digestOfFile)
    try catalog.keep(made, limit: 99)
    try catalog.close()
    return id
  }

  @Test("files in a recording's folder that no row names are noted, and no others")
  func strangeFiles() throws {
    let id = try keepConversion()
    for name in ["audio.wav.map", "converted-1.mp3", "converted-2.mp3", "waveform-old.pyramid", "notes.txt"] {
      try write("file", to: data.store.folder(of: id) + "/" + name)
    }
    let report = try data.check()
    #expect(report.isSound)
    #expect(
      report.notes.map(\.path)
        == ["converted-2.mp3", "notes.txt", "waveform-old.pyramid"].map { "recordings/\(id)/\($0)" })
  }

  @Test("a file that an attempt has put into a recording's folder, and that no row names yet, isn't strange")
  func attemptsFiles() throws {
    let (id, token) = (data.recordings[0].id, AttemptToken(job: JobID(), attempt: 1, nonce: "0123456789abcdef"))
    try data.execute(
      """
      INSERT INTO attempts (job, attempt, nonce, node, folder, begun_at)
        VALUES ('\(token.job)', 1, '\(token.nonce)', 'n', '\(id)', 1)
      """)
    try write("file", to: data.store.folder(of: id) + "/waveform-\(token.name).pyramid")
    #expect(try data.check().notes == [])
    try write("file", to: data.store.folder(of: id) + "/waveform-\(JobID())-1-\(token.nonce).pyramid")
    #expect(codes(try data.check().notes) == ["strange_file"])
  }

  @Test("a folder that an upload has just made has no problem, and one with files but no row has")
  func newFolder() throws {
    let id = RecordingID()
    try FileSystem.makeFolder(data.store.folder(of: id))
    var report = try data.check()
    #expect(report.isSound && codes(report.notes) == ["half_finished"])
    try write("sound", to: data.store.folder(of: id) + "/audio.wav")
    #expect(codes(try data.check().problems) == ["row_missing"])
    try write("", to: data.store.folder(of: id) + "/unfinished")
    report = try data.check()
    #expect(report.isSound && codes(report.notes) == ["half_finished"])
  }

  @Test("a folder that can't be read is a problem and doesn't end the check")
  func unreadableFolder() throws {
    let path = data.store.folder(of: RecordingID())
    #expect(unsafe symlink(path, path) == 0)
    let report = try data.check()
    #expect(codes(report.problems) == ["folder_unreadable"] && report.recordings == 3)
  }

  @Test("of many folders without a row, the first thousand are listed, all are counted, and a repair settles all")
  func manyFindings() throws {
    for _ in 0..<1003 {
      let folder = data.store.folder(of: RecordingID())
      try FileSystem.makeFolder(folder)
      try write("sound", to: folder + "/audio.wav")
    }
    try FileSystem.remove(data.store.folder(of: data.recordings[0].id) + "/audio.wav")
    let report = try data.check()
    #expect(report.foundProblems.counts == ["row_missing": 1003, "audio_missing": 1])
    #expect(report.problems.count == 1001 && report.foundProblems.count == 1004)
    try data.repair()
    #expect(data.store.orphanCount() == 1003)
    #expect(codes(try data.check().problems) == ["audio_missing"])
  }

  @Test(
    "a working copy with the wrong length or SHA-256 is damaged, and rebuilt by a repair", arguments: ["soun", "sounD"])
  func workingCopy(damaged: String) throws {
    let catalog = try Catalog(path: data.store.catalogPath)
    catalog.keepDescriptions(in: data.store.descriptions) { Issue.record($1, "\($0)") }
    let id = data.recordings[0].id
    try catalog.update(id) {
      var hash = SHA256()
      hash.update(Array("sound".utf8).span)
      $0.media = "{}"
      $0.noteWorkingCopy(StoredFile(key: ObjectKey($0.id, "working-1.wav"), bytes: 5, sha256: hash.hexDigest()))
    }
    try catalog.close()
    let path = data.store.folder(of: id) + "/working-1.wav"
    try write("sound", to: path)
    #expect(try data.check() == sound(files: 3))
    try write(damaged, to: path)
    #expect(codes(try data.check().problems) == ["working_copy_damaged"])
    #expect(try data.repair().done.contains { $0.hasPrefix("1 waveforms will be built again") })
    #expect(try data.check() == sound(files: 3))
    // A second one finds nothing left to do.
    #expect(try data.repair() == DataRepair.Outcome())
    let repaired = try Catalog(path: data.store.catalogPath)
    #expect(try repaired.recording(id)?.waveformState == .queued)
    #expect(try repaired.unfinishedJobs().count == 1)
  }

  @Test("a conversion that is missing is noted, and one with other bytes than its row says is damaged")
  func conversions() throws {
    let id = try keepConversion()
    #expect(codes(try data.check().notes) == ["conversion_missing"])
    for text in ["fil", "fine"] {
      try write(text, to: data.store.folder(of: id) + "/converted-1.mp3")
      #expect(codes(try data.check().problems) == ["conversion_damaged"])
    }
    try write("file", to: data.store.folder(of: id) + "/converted-1.mp3")
    #expect(try data.check() == sound(files: 3))
  }

  @Test("rows that can't be read don't hide the others from the check, however many there are")
  func batches() throws {
    try FileSystem.remove(data.store.folder(of: data.recordings[0].id) + "/audio.wav")
    try data.execute("UPDATE recordings SET sample_rate = -1 WHERE id <> '\(data.recordings[0].id)'")
    let report = try DataCheck(batch: 1) { _ in nil }.run(in: MediaStore(lookingAt: data.path))
    #expect(codes(report.problems) == ["audio_missing", "row_unreadable", "row_unreadable"])
  }

  private func sound(files: Int) -> DataCheck.Report {
    var report = DataCheck.Report()
    (report.recordings, report.files, report.bytes) = (3, files, 21)
    return report
  }

  @Test("unreadable rows are counted by table")
  func unreadableRows() throws {
    let catalog = try Catalog(path: data.store.catalogPath)
    for recording in data.recordings {
      try catalog.insert(sample(), jobs: [Job(kind: .waveform, recording: recording.id)])
    }
    try catalog.close()
    try data.execute("UPDATE jobs SET progress = 7 WHERE rowid < 3")
    let notes = try data.check().notes.filter { $0.code == "row_unreadable" }
    #expect(notes.map(\.detail) == ["2 rows of the table “jobs” can't be read."])
  }

  @Test("renaming a recording while the check runs is not a problem")
  func renames() throws {
    try data.store.claim()
    let catalog = try Catalog(path: data.store.catalogPath)
    catalog.keepDescriptions(in: data.store.descriptions) { Issue.record($1, "\($0)") }
    let (ids, ended) = (data.recordings.map(\.id), DispatchSemaphore(value: 0))
    let checked = Flag()
    DispatchQueue(label: "renames").async {
      var count = 0
      while !checked.isSet {
        count += 1
        _ = try? catalog.update(ids[count % ids.count]) { [count] in $0.name = "talk \(count).wav" }
      }
      ended.signal()
    }
    for _ in 0..<5 { #expect(try data.check().problems == []) }
    checked.set()
    ended.wait()
    try catalog.close()
  }
}

private final class Flag: @unchecked Sendable {
  private let lock = NSLock()
  private var value = false

  var isSet: Bool { lock.withLock { value } }

  func set() { lock.withLock { value = true } }
}
