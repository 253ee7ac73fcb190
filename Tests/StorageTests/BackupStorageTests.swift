import Foundation
import PresentRows
import Testing

@testable import Storage

@Suite struct BackupStorageTests {
  let data: DataFolder
  var backup: String { data.folder("backup") }

  init() throws { data = try DataFolder() }

  @Test("a recording with an unreadable row is backed up, reported, and restored")
  func unreadableRow() throws {
    let id = data.recordings[1].id
    try data.execute("UPDATE recordings SET sample_rate = 0 WHERE id = '\(id)'")
    let report = try Backup(of: data.path, to: backup).make()
    #expect(report.damaged == [id])
    #expect(
      try FileSystem.names(in: backup + "/recordings/\(id)").sorted() == [
        "audio.wav", data.recordings[1].descriptionKey.name,
      ])
    let restored = data.folder("restored")
    #expect(try Restoration(of: backup, to: restored).run().damaged == [])
    let store = try MediaStore(directory: restored)
    let catalog = try Catalog(path: store.catalogPath)
    #expect(Reconciliation(catalog: catalog, store: store).run(verified: true).healed == 1)
    #expect(try catalog.recording(id) == data.recordings[1])
  }

  @Test("a backup has the files that rows name, the maps beside sounds, and no others", arguments: [true, false])
  func files(isDamaged: Bool) throws {
    let id = data.recordings[1].id
    for name in ["audio.wav.map", "working-1.flac", "waveform-1.pyramid", "converted-1.mp3", "notes.txt"] {
      try write("file", to: data.store.folder(of: id) + "/" + name)
    }
    try data.execute(
      """
      UPDATE recordings SET working_key = 'recordings/\(id)/working-1.flac', waveform_state = 'ready',
        waveform_key = 'recordings/\(id)/waveform-1.pyramid' WHERE id = '\(id)'
      """)
    if isDamaged { try data.execute("UPDATE recordings SET working_key = working_key || char(10) WHERE id = '\(id)'") }
    let report = try Backup(of: data.path, to: backup).make()
    let working = isDamaged ? [] : ["working-1.flac"]
    #expect(
      try FileSystem.names(in: backup + "/recordings/\(id)").filter { !$0.hasPrefix("recording-") }.sorted()
        == ["audio.wav", "audio.wav.map", "waveform-1.pyramid"] + working)
    #expect(report.recordings == 3 && report.damaged == [])
    #expect(try Restoration(of: backup, to: data.folder("restored")).run().damaged == [])
  }

  @Test("audio missing from the disk is reported")
  func lostAudio() throws {
    try FileSystem.remove(data.store.folder(of: data.recordings[1].id) + "/audio.wav")
    #expect(try Backup(of: data.path, to: backup).make().damaged == [data.recordings[1].id])
  }

  @Test("a backup contains no list of removals, and no labels of deleted recordings")
  func removals() throws {
    let catalog = try Catalog(path: data.store.catalogPath)
    for recording in data.recordings {
      let track = LabelTrack(of: recording.id, name: "a", kind: .labels, language: nil, source: .upload)
      try catalog.insert(track, [LabelChunk(start: 0, end: 1, texts: ["a"], labels: [1])], limit: 9)
    }
    _ = try catalog.deleteRecording(data.recordings[0].id)
    try catalog.insert(
      Upload(id: UploadID(), length: 9, expiresAt: .now), limits: UploadLimits(total: 9, perClient: 9))
    // Simulates a deletion between copying the catalog and copying the files.
    try FileSystem.remove(data.store.folder(of: data.recordings[1].id))
    try catalog.close()
    #expect(try Backup(of: data.path, to: backup).make().damaged == [])
    let copy = try Catalog(path: backup + "/catalog.sqlite")
    #expect(try copy.recordings(limit: 9).map(\.id) == [data.recordings[2].id])
    #expect(try copy.removals() == [])
    #expect(try copy.read { try $0.first("SELECT count(*) FROM label_chunks") } == 1)
  }

  @Test(
    "uploads that are joined while files are copied are in the backup as their recording", arguments: [true, false])
  func uploadsThatAreJoined(isBegun: Bool) throws {
    let live = try Catalog(path: data.store.catalogPath)
    let limits = UploadLimits(total: 9, perClient: 9)
    let parts = try (0..<2).map { number in
      let upload = Upload(id: UploadID(), length: 5, offset: 5, concatenation: "partial", expiresAt: .now + 9e6)
      try live.insert(upload, limits: limits)
      try write("part \(number)", to: data.store.path(ofPart: upload.id))
      return upload.id
    }
    let joined = Upload(
      id: UploadID(), length: 10, offset: isBegun ? 0 : 10,
      concatenation: "final;/v1/uploads/\(parts[0]) /v1/uploads/\(parts[1])", expiresAt: .now + 9e6)
    if isBegun { try live.insert(joined, limits: limits) }
    let (id, first) = (RecordingID(), data.recordings[0])
    let made = Recording(
      id: id, name: "joined.wav", createdAt: first.createdAt, bytes: first.bytes, sha256: first.sha256,
      format: first.format, waveformState: .failed, audioKey: ObjectKey(id, "audio.wav"))
    var hasEnded = false
    let report = try Backup(of: data.path, to: backup).make { _ in
      if hasEnded { return true }
      hasEnded = true
      do {
        if !isBegun { try live.insert(joined, limits: limits) }
        try FileSystem.makeFolders(data.store.folder(of: id))
        try write("sound 0", to: data.store.folder(of: id) + "/audio.wav")
        try live.insert(made, jobs: [], finishing: joined.id, expiresAt: joined.expiresAt)
        for part in parts {
          try FileSystem.remove(data.store.path(ofPart: part))
          _ = try live.deleteUpload(part)
        }
      } catch {
        Issue.record(error)
      }
      return true
    }
    try live.close()
    #expect(report.recordings == 4 && report.uploads == 0 && report.damaged == [])
    let restored = data.folder("restored")
    #expect(try Restoration(of: backup, to: restored).run().damaged == [])
    let catalog = try Catalog(path: restored + "/catalog.sqlite")
    #expect(try catalog.recording(id) == made && catalog.upload(joined.id)?.recording == id)
    #expect(try parts.allSatisfy { try catalog.upload($0) == nil })
    #expect(try read(restored + "/recordings/\(id)/audio.wav") == "sound 0")
  }

  @Test("an upload that ends while files are copied is in the backup as its recording, and one that is canceled isn't")
  func uploadsThatEnd() throws {
    let live = try Catalog(path: data.store.catalogPath)
    let uploads = try (0..<3).map { number in
      let upload = Upload(id: UploadID(), length: 7, offset: 7, expiresAt: .now + 9e6)
      try live.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
      try write("sound \(number)", to: data.store.path(ofPart: upload.id))
      return upload
    }
    let (id, first) = (RecordingID(), data.recordings[0])
    let made = Recording(
      id: id, name: "uploaded.wav", createdAt: first.createdAt, bytes: first.bytes, sha256: first.sha256,
      format: first.format, waveformState: .failed, audioKey: ObjectKey(id, "audio.wav"))
    let track = LabelTrack(
      of: made.id, name: "words", kind: .labels, language: nil, source: .embedded, at: first.createdAt)
    let chunk = [LabelChunk(start: 0, end: 1, texts: ["a"], labels: [0x31])]
    var job = Job(kind: .waveform, recording: made.id, state: .succeeded)
    job.result = #"{"recording":"\#(made.id)"}"#
    var hasEnded = false
    let report = try Backup(of: data.path, to: backup).make { _ in
      if hasEnded { return true }
      hasEnded = true
      do {
        try FileSystem.makeFolders(data.store.folder(of: made.id))
        try FileSystem.rename(
          data.store.path(ofPart: uploads[0].id), to: data.store.folder(of: made.id) + "/audio.wav")
        try live.insert(made)
        try live.insert(job)
        try live.insert(track, chunk, limit: 9)
        try live.write { db in
          try db.run("UPDATE uploads SET recording = ? WHERE id = ?", [made.id.text, uploads[0].id.text])
        }
        try FileSystem.remove(data.store.path(ofPart: uploads[1].id))
        _ = try live.deleteUpload(uploads[1].id)
      } catch {
        Issue.record(error)
      }
      return true
    }
    try live.close()
    #expect(report.recordings == 4 && report.uploads == 1 && report.damaged == [])
    let restored = data.folder("restored")
    #expect(try Restoration(of: backup, to: restored).run().damaged == [])
    let catalog = try Catalog(path: restored + "/catalog.sqlite")
    #expect(try catalog.recording(made.id) == made)
    #expect(try catalog.upload(uploads[0].id)?.recording == made.id && catalog.upload(uploads[1].id) == nil)
    #expect(try catalog.unfinishedUploads().map(\.id) == [uploads[2].id])
    #expect(try read(restored + "/recordings/\(made.id)/audio.wav") == "sound 0")
    #expect(try catalog.labels(of: track.id)?.chunks.map(\.labels) == [[0x31]])
    #expect(try catalog.latestJob(kind: .waveform, state: .succeeded, of: made.id)?.id == job.id)
  }

  @Test(
    "the secrets for tokens are backed up and restored, readable only for their owner, also from a file elsewhere",
    arguments: [false, true])
  func tokenSecret(isElsewhere: Bool) throws {
    try write("a secret of 43 characters\n", to: isElsewhere ? data.folder("file") : data.path + "/token-secret")
    if isElsewhere {
      #expect(try !Backup(of: data.path, to: data.folder("without")).make().hasSecrets)
      try write("an earlier one\n", to: data.path + "/token-secret")
    }
    let secrets = isElsewhere ? data.folder("file") : nil
    #expect(try Backup(of: data.path, to: backup, secrets: secrets).make().hasSecrets)
    #expect(throws: StorageError.self) {
      try Backup(of: data.path, to: data.folder("no"), secrets: data.folder("missing")).make()
    }
    let restored = data.folder("restored")
    #expect(try Restoration(of: backup, to: restored).run().damaged == [])
    #expect(try read(restored + "/token-secret") == "a secret of 43 characters\n")
    let mode = try FileManager.default.attributesOfItem(atPath: restored + "/token-secret")[.posixPermissions] as? Int
    #expect(mode.map { $0 & 0o077 } == 0)
  }

  @Test("what is left of a backup is restored even if its catalog is damaged")
  func damagedCatalog() throws {
    _ = try Backup(of: data.path, to: backup, method: .copy).make()
    try write("no catalog", to: backup + "/catalog.sqlite")
    let restored = data.folder("restored")
    #expect(try Restoration(of: backup, to: restored, keepsDamaged: true).run().damaged == ["catalog.sqlite"])
    let store = try MediaStore(directory: restored)
    _ = try DataRepair(store, pyramidFault: { _ in nil }).run()
    #expect(try Catalog(path: store.catalogPath).recordings(limit: 9).count == 3)
  }

  @Test("a file of a backup that can't be read is damaged, and the others are restored", arguments: ["folder", "pipe"])
  func unreadableFile(kind: String) throws {
    _ = try Backup(of: data.path, to: backup, method: .copy).make()
    let name = "recordings/\(data.recordings[1].id)/audio.wav"
    try FileSystem.remove("\(backup)/\(name)")
    if kind == "folder" {
      try FileSystem.makeFolder("\(backup)/\(name)")
    } else {
      #expect(unsafe mkfifo("\(backup)/\(name)", 0o600) == 0)
    }
    let restored = data.folder("restored")
    #expect(try Restoration(of: backup, to: restored).run().damaged == [name])
    #expect(!FileSystem.isFolder(restored))
    #expect(try Restoration(of: backup, to: restored, keepsDamaged: true).run().damaged == [name])
    #expect(try read("\(restored)/recordings/\(data.recordings[2].id)/audio.wav") == "sound 2")
  }

  @Test(
    "a list of checksums that names files outside the backup is refused, and nothing is written",
    arguments: ["../outside", "recordings/../../outside", "/etc/hostname", "recordings//x", ""])
  func pathsOutside(path: String) throws {
    _ = try Backup(of: data.path, to: backup, method: .copy).make()
    try write("secret", to: data.folder("outside"))
    let line = String(repeating: "0", count: 64) + "  " + path
    try write(read(backup + "/SHA256SUMS") + line + "\n", to: backup + "/SHA256SUMS")
    #expect(throws: StorageError.corrupt(column: "SHA256SUMS", value: line)) {
      try Restoration(of: backup, to: data.folder("restored"), keepsDamaged: true).run()
    }
    #expect(!FileSystem.isFolder(data.folder("restored")))
  }
}
