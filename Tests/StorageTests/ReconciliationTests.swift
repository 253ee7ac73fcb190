import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

@Suite struct ReconciliationTests {
  let folder: TemporaryFolder
  let store: MediaStore
  let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder("data"))
    catalog = try Catalog(path: store.catalogPath)
    catalog.keepDescriptions(in: store.descriptions) { id, error in Issue.record(error, "\(id)") }
  }

  func start(with other: Catalog? = nil, verified: Bool = true) -> SweepReport {
    Reconciliation(catalog: other ?? catalog, store: store).run(verified: verified)
  }

  /// Makes a recording as an upload leaves it: audio, row, and description.
  @discardableResult
  func upload(_ text: String, id: RecordingID = RecordingID()) throws -> Recording {
    let recording = try self.recording(receive(text, id: id), id: id)
    try catalog.insert(recording)
    return recording
  }

  func recording(_ stored: StoredFile, id: RecordingID) -> Recording {
    Recording(
      id: id, name: "talk “1”.wav", bytes: stored.bytes, sha256: stored.sha256,
      format: SoundShape(
        container: "wav", codec: "pcm_s16", sampleRate: 44_100, channels: 2, frames: 9),
      waveformState: .ready, audioKey: stored.key)
  }

  /// Performs an upload up to the moment before the row is inserted.
  func receive(_ text: String, id: RecordingID) throws -> StoredFile {
    let file = try store.receive()
    try file.append(Array(text.utf8).span)
    return try store.objects.adopt(file, as: id, name: "audio.wav")
  }

  /// Returns the names of a recording's files, the description's without its version.
  func files(of id: RecordingID) throws -> [String] { try names(in: "data/recordings/\(id)") }

  func names(in path: String) throws -> [String] {
    try folder.contents(of: path).map { $0.hasPrefix("recording-") ? "recording.json" : $0 }
  }

  /// Returns the path of a recording's only description.
  func descriptionPath(of id: RecordingID) throws -> String {
    let names = try FileSystem.names(in: store.folder(of: id)).filter { $0.hasPrefix("recording-") }
    return store.folder(of: id) + "/" + (try #require(names.first))
  }

  /// Returns a catalog without the contents of this one, like one from a backup.
  func olderCatalog() throws -> Catalog {
    let older = try Catalog(path: folder("older.sqlite"))
    older.keepDescriptions(in: store.descriptions) { id, error in Issue.record(error, "\(id)") }
    return older
  }

  // MARK: What belongs together

  @Test("a recording with its row stays unchanged, and so do unrelated files")
  func nothingToDo() throws {
    let id = try upload("sound").id
    for name in ["incoming/x.part", "recordings/holiday", "jobs/.keep", "removed/me", "uploads/notes.part"] {
      try write("mine", to: store.directory + "/" + name)
    }
    let before = try folder.contents()
    #expect(start() == SweepReport())
    #expect(try folder.contents() == before)
    #expect(try files(of: id) == ["audio.wav", "recording.json"])
  }

  @Test("leftovers in their folders are removed: plain uploads, work folders, removed folders")
  func halfFinishedByPlace() throws {
    try write("half", to: store.directory + "/incoming/\(RecordingID()).part")
    try write("part", to: store.makeWorkFolder(of: JobID()) + "/1-0123456789abcdef.pyramid")
    let halfRemoved = store.directory + "/removed/\(RecordingID())"
    try FileSystem.makeFolders(halfRemoved)
    try write("rest", to: halfRemoved + "/audio.wav")
    var expected = SweepReport()
    (expected.incoming, expected.recordings, expected.jobs) = (1, 1, 1)
    #expect(start() == expected)
    #expect(try folder.contents(of: "data").allSatisfy { !$0.contains("part") && !$0.contains("audio") })
  }

  @Test("a work folder stays while another process uses it")
  func heldFolder() throws {
    let path = try store.makeWorkFolder(of: JobID())
    func hold() throws {
      let holder = try FileDescriptor(path: path, flags: O_RDONLY | O_DIRECTORY)
      #expect(try holder.lock())
      #expect(start() == SweepReport())
      #expect(FileSystem.isFolder(path))
    }
    try hold()
    #expect(start().jobs == 1)
    #expect(!FileSystem.isFolder(path))
  }

  @Test("an unreadable folder is reported, and the rest is done")
  func failure() throws {
    try write("half", to: store.directory + "/incoming/\(RecordingID()).part")
    try FileSystem.remove(store.directory + "/jobs")
    let report = start()
    #expect(report.incoming == 1)
    #expect(report.failures == [.io(operation: "opendir", path: store.directory + "/jobs", errno: ENOENT)])
  }

  // MARK: Folders without a row

  @Test("a crash before the row leaves a folder marked as unfinished, which is removed")
  func unfinished() throws {
    let id = RecordingID()
    _ = try receive("sound", id: id)
    #expect(try files(of: id) == ["audio.wav", "unfinished"])
    #expect(start().recordings == 1)
    #expect(try folder.contents(of: "data/recordings") == [])
  }

  @Test("a crash after the row, before the description, loses nothing: the next start describes the recording")
  func undescribed() throws {
    let id = RecordingID()
    let recording = try recording(receive("sound", id: id), id: id)
    try Catalog(path: store.catalogPath).insert(recording)
    #expect(try files(of: id) == ["audio.wav", "unfinished"])
    #expect(start() == SweepReport())
    #expect(try files(of: id) == ["audio.wav", "recording.json"])
    #expect(store.described(id) == recording)
  }

  @Test("a recording's lost row is completely restored from its folder")
  func adoption() throws {
    var recording = try upload("sound")
    let pyramid = try receive("pyramid", id: RecordingID())
    try FileSystem.rename(store.path(of: pyramid.key), to: store.folder(of: recording.id) + "/waveform-1.pyramid")
    recording = try #require(
      try catalog.update(recording.id) {
        $0.name = "renamed.wav"
        $0.waveformKey = ObjectKey($0.id, "waveform-1.pyramid")
        $0.warnings = [Warning(code: "truncated", detail: "short")]
        $0.noiseRegions = [NoiseRegion(4410..<26_460, sampleRate: 44_100, level: -52.1, score: 0.9)]
        $0.derivedFrom = Derivation(recording: RecordingID(), job: JobID(), operation: "denoise")
      })
    let older = try olderCatalog()
    #expect(start(with: older).adopted == 1)
    #expect(try older.recording(recording.id) == recording)
    #expect(start(with: older) == SweepReport())
  }

  @Test(
    "a recording that had no waveform yet, or has lost it, gets its row back with a job that builds it",
    arguments: [JobState.running, .succeeded])
  func adoptionWithoutWaveform(job state: JobState) throws {
    let recording = try upload("sound")
    try catalog.update(recording.id) {
      if state == .running {
        $0.waveformState = .building
      } else {
        $0.waveformKey = ObjectKey($0.id, "waveform-1.pyramid")
      }
    }
    let older = try olderCatalog()
    #expect(start(with: older).adopted == 1)
    let job = try #require(try older.unfinishedJobs().first)
    let adopted = try #require(try older.recording(recording.id))
    #expect(job.kind == .waveform && job.recording == recording.id)
    #expect(adopted.waveformState == .queued && adopted.waveformJob == job.id)
  }

  @Test(
    "an unexplained folder is set aside, whatever is wrong with its description",
    arguments: [
      "", "{}", "not JSON", #"{"version":1}"#, #"{"version":2,"recording":{}}"#, "the description of another recording",
      "an audio file elsewhere", "no audio file", "a length below zero",
    ])
  func orphans(description: String) throws {
    let id = try upload("sound").id
    let other = try upload("other").id
    let path = try descriptionPath(of: id)
    switch description {
    case "the description of another recording": try write(read(descriptionPath(of: other)), to: path)
    case "an audio file elsewhere":
      try write(read(path).replacing("audio.wav", with: "../\(other)/audio.wav"), to: path)
    case "no audio file": try FileSystem.rename(store.folder(of: id) + "/audio.wav", to: folder("audio.wav"))
    case "a length below zero":
      try write(read(path).replacing(#""frames":9"#, with: #""frames":-9"#), to: path)
    case "": try FileSystem.remove(path)
    default: try write(description, to: path)
    }
    if description == "no audio file" { try write("mine", to: store.folder(of: id) + "/notes.txt") }
    let before = try files(of: id)
    let older = try olderCatalog()
    let report = start(with: older)
    #expect(report.adopted == 1 && report.orphans == 1 && report.recordings == 0, "the other one is taken back")
    #expect(try names(in: "data/orphaned/\(id)") == before)
    #expect(store.orphanCount() == 1)
    #expect(start(with: older) == SweepReport(), "and that once")
  }

  @Test("an empty folder is removed")
  func emptyFolder() throws {
    try FileSystem.makeFolder(store.folder(of: RecordingID()))
    #expect(start().recordings == 1)
    #expect(try folder.contents(of: "data/recordings") == [])
  }

  @Test("a deletion interrupted by a crash is completed, and then its record is deleted")
  func deletion() throws {
    let id = try upload("sound").id
    _ = try catalog.deleteRecording(id)
    #expect(try catalog.removals() == [id.text])
    #expect(start().recordings == 1)
    #expect(try folder.contents(of: "data/recordings") == [])
    #expect(try catalog.removals() == [])
  }

  @Test("with a catalog that couldn't be checked in time, nothing is removed or moved")
  func unverified() throws {
    let (deleted, unmarked) = (try upload("deleted").id, try upload("unmarked").id)
    _ = try catalog.deleteRecording(deleted)
    try FileSystem.remove(descriptionPath(of: unmarked))
    _ = try receive("unfinished", id: RecordingID())
    let before = try folder.contents(of: "data/recordings")
    var expected = SweepReport()
    (expected.isUnverified, expected.adopted) = (true, 1)
    #expect(try start(with: olderCatalog(), verified: false) == expected, "a lost row is inserted all the same")
    #expect(try folder.contents(of: "data/recordings") == before)
    #expect(start(verified: false).recordings == 0, "not even what was deleted is removed")
    #expect(try folder.contents(of: "data/recordings") == before)
  }

  @Test("a failing catalog loses nothing")
  func failingCatalog() throws {
    try upload("sound")
    let before = try folder.contents(of: "data/recordings")
    let older = try olderCatalog()
    try older.sqlite.disconnect()
    let report = start(with: older)
    #expect(report.adopted == 0 && report.orphans == 0 && !report.failures.isEmpty)
    #expect(try folder.contents(of: "data/recordings") == before)
  }

  @Test("a deletion is not forgotten while a folder or an upload of that name is there")
  func rememberedDeletion() throws {
    let recording = try upload("sound").id
    _ = try catalog.deleteRecording(recording)
    let reconciliation = Reconciliation(catalog: catalog, store: store)
    try reconciliation.forgetRemovals()
    #expect(try catalog.removals() == [recording.text])
    try store.remove(recording)
    try reconciliation.forgetRemovals()
    #expect(try catalog.removals().isEmpty)
  }

  @Test("a folder put back after its deletion was completed is a recording again")
  func putBack() throws {
    let id = try upload("sound").id
    try FileManager.default.copyItem(atPath: store.folder(of: id), toPath: folder("copy"))
    _ = try catalog.deleteRecording(id)
    try store.remove(id)
    try Reconciliation(catalog: catalog, store: store).forgetRemovals()
    try FileManager.default.moveItem(atPath: folder("copy"), toPath: store.folder(of: id))
    #expect(start().adopted == 1)
    #expect(try catalog.recording(id) != nil)
  }

  @Test("an older catalog that waits for a job adopts its result and ends the job")
  func olderThanAResult() throws {
    let finished = try upload("cleaned")
    let source = try upload("source")
    let older = try olderCatalog()
    try older.insert(source)
    var waiting = finished
    (waiting.audioKey, waiting.bytes, waiting.sha256, waiting.waveformState) = (nil, nil, nil, .building)
    let job = Job(kind: .denoise, recording: source.id, output: finished.id)
    waiting.waveformJob = job.id
    try older.insert(waiting, jobs: [job])
    #expect(start(with: older).adopted == 1)
    #expect(try older.recording(finished.id)?.audioFile == "audio.wav")
    #expect(try older.job(job.id)?.state == .succeeded)
    #expect(try files(of: finished.id) == ["audio.wav", "recording.json"])
  }

  @Test("a job's leftovers are removed, but a finished recording is set aside")
  func discarding() throws {
    let (finished, half) = (try upload("cleaned").id, RecordingID())
    _ = try receive("half", id: half)
    for id in [finished, half] { try Blobs(store, of: catalog).discard(id) }
    #expect(try folder.contents(of: "data/recordings") == [])
    #expect(try names(in: "data/orphaned/\(finished)") == ["audio.wav", "recording.json"])
    #expect(store.orphanCount() == 1)
  }

  @Test("if the disk can't tell whether a folder is marked, the folder stays")
  func unreadableFolder() throws {
    let id = try upload("sound").id
    // A name that is too long simulates a failing disk: it isn't known whether the mark exists.
    try FileSystem.remove(descriptionPath(of: id))
    try FileManager.default.createSymbolicLink(
      atPath: store.folder(of: id) + "/unfinished", withDestinationPath: String(repeating: "x", count: 300))
    let report = try start(with: olderCatalog())
    #expect(report.recordings == 0 && report.orphans == 0 && report.failures.count == 1)
    #expect(try read(store.folder(of: id) + "/audio.wav") == "sound")
  }

  @Test("an unreadable row is restored from its folder; an unreadable job is restarted")
  func healing() throws {
    let recordings = [try upload("one"), try upload("two")]
    let job = Job(kind: .waveform, recording: recordings[1].id)
    _ = try catalog.update(recordings[1].id, if: { _ in true }, inserting: job) {
      ($0.waveformState, $0.waveformJob) = (.queued, job.id)
    }
    let file = try SQLiteConnection(store.catalogPath)
    try file.run("UPDATE recordings SET sample_rate = 0 WHERE id = ?", [recordings[0].id.text])
    try file.run("UPDATE jobs SET attempts = -1")
    let report = start()
    #expect(report.healed == 1 && report.forgotten == 1 && report.unreadable == 0 && report.failures == [])
    #expect(try catalog.recording(recordings[0].id) == recordings[0])
    let begun = try #require(try catalog.unfinishedJobs().first)
    #expect(begun.id != job.id && begun.recording == recordings[1].id)
    #expect(try catalog.recording(recordings[1].id)?.waveformJob == begun.id)
  }

  @Test(
    "an outdated description is rewritten, and a row contradicted by its audio is corrected"
  )
  func tending() throws {
    let (damaged, undescribed) = (try upload("sound"), try upload("other"))
    try write("{", to: descriptionPath(of: undescribed.id))
    try SQLiteConnection(store.catalogPath).run("UPDATE recordings SET bytes = 7 WHERE id = ?", [damaged.id.text])
    #expect(try tend() == TendingReport(corrected: 1))
    #expect(try catalog.recording(damaged.id) == damaged)
    #expect(store.described(undescribed.id) == undescribed)
  }

  @Test("the latest whole description counts, and one that the catalog has forgotten is followed by a later one")
  func versions() throws {
    let first = try upload("sound")
    let second = try #require(try catalog.update(first.id) { $0.name = "second" })
    let path = store.path(of: second.descriptionKey)
    #expect(try second.version > first.version && descriptionPath(of: first.id) == path)
    // A crash comes between the new one and the removal of the one before; then the disk damages the new one.
    try write(String(decoding: first.describedJSON, as: UTF8.self), to: store.path(of: first.descriptionKey))
    #expect(store.described(first.id) == second)
    try write(read(path).replacing("second", with: "decond"), to: path)
    #expect(store.described(first.id) == first)
    let older = try olderCatalog()
    #expect(start(with: older).adopted == 1)
    #expect(try older.recording(first.id) == first)
    #expect(try Reconciliation(catalog: older, store: store).tendFolders(verified: true) == TendingReport())
    let last = try #require(try older.recording(first.id))
    #expect(try last.version > second.version && files(of: first.id) == ["audio.wav", "recording.json"])
    #expect(store.described(first.id) == last)
  }

  private func tend(verified: Bool = true, isLent: (String) -> Bool = { _ in false }) throws -> TendingReport {
    try Reconciliation(catalog: catalog, store: store).tendFolders(verified: verified, isLent: isLent)
  }

  @Test("files that others may read become private, except for one that is lent")
  func modes() throws {
    let paths = try ["one", "two"].map { store.folder(of: try upload($0).id) + "/audio.wav" }
    let part = store.directory + "/uploads/\(try self.part("abc")).part"
    for path in paths + [part] { #expect(unsafe chmod(path, 0o640) == 0) }
    func mode(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
    _ = try tend { $0 == paths[0] }
    #expect(try (paths + [part]).map(mode) == [0o640, 0o600, 0o600])
    _ = try tend()
    #expect(try mode(paths[0]) == 0o600)
  }

  @Test("conversions without a row are removed, unless their job is running or the catalog is unverified")
  func lostConversions() throws {
    let attempt = "-1-0123456789abcdef"
    let id = try upload("sound").id
    let (unknown, kept, ended, running) = (JobID(), JobID(), JobID(), JobID())
    for job in [unknown, kept, ended, running] {
      try write("mp3", to: store.folder(of: id) + "/converted-\(job)\(attempt).mp3")
    }
    for (job, state) in [(ended, JobState.succeeded), (running, .running)] {
      var row = Job(id: job, kind: .convert, recording: id)
      row.state = state
      try catalog.insert(row)
    }
    let key = ObjectKey(id, "converted-\(kept)\(attempt).mp3")
    let row = Conversion(recording: id, format: "mp3", key: key, bytes: 3, sha256: "")
    try catalog.keep(row, limit: 9)
    try write("notes", to: store.folder(of: id) + "/converted-by-hand.mp3")
    #expect(try tend(verified: false).removed == 0)
    #expect(try tend().removed == 2)
    #expect(
      try files(of: id).filter { $0.hasPrefix("converted-") }
        == [kept, running].map { "converted-\($0)\(attempt).mp3" }.sorted() + ["converted-by-hand.mp3"])
  }

  @Test("a description has the names of files, as every version has written and read it")
  func names() throws {
    let text = """
      {"recording":{"audio_file":"audio.wav","bytes":3,"created_at":0,"format":{"channels":1,"codec":"pcm_s16",\
      "container":"wav","sample_rate":8000},"id":"01a215cf-db7b-74a1-a21c-8ccffb19512d","media":"{}","name":"a",\
      "sha256":"\(String(repeating: "0f", count: 32))","version":0,"warnings":[],\
      "waveform_file":"waveform-1.pyramid","waveform_state":"ready","working_bytes":4,"working_file":"working-1.wav",\
      "working_sha256":"\(String(repeating: "1e", count: 32))"},\
      "sha256":"DIGEST","version":1}

      """
    let id = try #require(RecordingID("01a215cf-db7b-74a1-a21c-8ccffb19512d"))
    let recording = Recording(
      id: id, name: "a", createdAt: Timestamp(milliseconds: 0), bytes: 3, sha256: String(repeating: "0f", count: 32),
      format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 8000, channels: 1), waveformState: .ready,
      waveformKey: ObjectKey(id, "waveform-1.pyramid"), audioKey: ObjectKey(id, "audio.wav"), media: "{}",
      workingKey: ObjectKey(id, "working-1.wav"), workingBytes: 4, workingSHA256: String(repeating: "1e", count: 32))
    let written = String(decoding: recording.describedJSON, as: UTF8.self)
    let member = text.dropFirst(#"{"recording":"#.utf8.count).prefix { $0 != "\n" }.components(
      separatedBy: #","sha256":"DIG"#)[0]
    var hash = SHA256()
    hash.update(Array(member.utf8).span)
    #expect(written == text.replacing("DIGEST", with: hash.hexDigest()))
    #expect(RecordingDescription(json: Array(written.utf8))?.recording == recording)
  }

  @Test("a description with any change is invalid")
  func checksum() throws {
    let id = try upload("sound").id
    let path = try descriptionPath(of: id)
    try write(read(path).replacing("44100", with: "14100"), to: path)
    #expect(store.described(id) == nil)
  }

  @Test(
    "a row names only its own kinds of file",
    arguments: ["working_key = 'recordings/' || id || '/audio.wav'", "waveform_key = audio_key"])
  func names(change: String) throws {
    let id = try upload("sound").id
    try SQLiteConnection(store.catalogPath).execute("UPDATE recordings SET \(change)")
    #expect(throws: StorageError.self) { try catalog.recording(id) }
    #expect(start().healed == 1)
    #expect(try catalog.recording(id)?.workingKey == nil && catalog.recording(id)?.waveformKey == nil)
  }
}
