import Foundation
import PresentRows
import Terms
import Testing

@testable import Storage

/// What every store of media must do, by the protocols alone.
@Suite(.onEveryStore) final class BlobsTests {
  private let folder: TemporaryFolder
  private let clock = TestClock()
  private let catalog: Catalog
  private let store: BlobsEngine.Opened
  private var blobs: Blobs { store.blobs }
  private var scratch: MediaStore { store.scratch }

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(
      path: folder("catalog.sqlite"),
      holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms(), now: { [clock] in clock.now() }))
    store = try BlobsEngine.current.open(folder, catalog)
    catalog.keepDescriptions(in: blobs.descriptions) { Issue.record($1, "\($0)") }
  }

  /// The catalog and its descriptions keep each other in a bucket.
  deinit { catalog.descriptions.withLock { $0 = nil } }

  /// Writes a file as a worker does.
  private func work(_ text: String) throws -> String {
    let path = try scratch.makeWorkFolder(of: JobID()) + "/output"
    try scratch.write(Array(text.utf8), toWorkFile: path)
    return path
  }

  /// Puts an object as a job does.
  private func put(_ text: String, as key: ObjectKey, makesFolder: Bool = true) throws -> StoredFile {
    try blobs.put(try work(text), as: key, makesFolder: makesFolder)
  }

  /// Returns the text of an object; nil if there is none.
  private func text(_ key: ObjectKey) throws -> String? {
    let file = try blobs.store.localFile(key)
    return try FileManager.default.fileExists(atPath: file.path) ? file.withPath(read) : nil
  }

  /// Receives an upload.
  private func receive(_ text: String) throws -> IncomingFile {
    let file = try scratch.receive()
    try file.append(Array(text.utf8).span)
    return file
  }

  /// Inserts a recording, whose audio is adopted before, with a waveform's job.
  private func record(_ text: String) throws -> (recording: Recording, job: Job) {
    let job = JobID()
    var recording = sample(job: job)
    let stored = try blobs.adopt(try receive(text), as: recording.id, name: "audio.wav")
    (recording.audioKey, recording.bytes, recording.sha256) = (stored.key, stored.bytes, stored.sha256)
    let waveform = Job(id: job, kind: .waveform, recording: recording.id)
    try catalog.insert(recording, jobs: [waveform])
    return (recording, waveform)
  }

  @Test("an object is found under its key")
  func finding() throws {
    let key = ObjectKey(RecordingID(), "waveform-1.pyramid")
    let stored = try put("0123456789", as: key)
    #expect(stored.key == key && stored.bytes == 10)
    #expect(blobs.store.look(at: key) == .present(bytes: 10))
    #expect(try blobs.store.localFile(key).withPath(read) == "0123456789")
    #expect(try blobs.store.fileAtHand(key)?.withPath(read) == "0123456789")
    #expect(try blobs.store.localFile(key).path == blobs.store.localFile(key).path)
    for (range, expected) in [(2..<5 as Range<Int64>, "234"), (0..<10, "0123456789"), (8..<99, "89"), (10..<99, "")] {
      #expect(try blobs.store.read(key, range) == Array(expected.utf8), "\(range)")
    }
    let ranges: [Range<Int64>] = [7..<9, 0..<1, 9..<20, 0..<1]
    #expect(try blobs.store.read(key, ranges) == ["78", "0", "9", "0"].map { Array($0.utf8) })
  }

  @Test("without an object, its file doesn't exist")
  func missing() throws {
    let key = ObjectKey(RecordingID(), "audio.wav")
    #expect(blobs.store.look(at: key) == .absent)
    #expect(try !FileManager.default.fileExists(atPath: blobs.store.localFile(key).path))
    #expect(try blobs.store.read(key, 0..<1) == nil && blobs.store.read(key, [0..<1, 4..<9]) == nil)
    blobs.delete(key)
    #expect(blobs.offer(folder("nothing"), as: key) == nil)
    #expect(blobs.store.look(at: key) == .absent)
  }

  @Test("a deleted recording isn't begun again by a job, unless the job makes the recording")
  func deletedMeanwhile() throws {
    let (recording, _) = try record("sound")
    _ = try catalog.deleteRecording(recording.id)
    try blobs.remove(recording.id)
    let key = ObjectKey(recording.id, "converted-1.mp3")
    #expect(throws: StorageError.self) { try put("text", as: key, makesFolder: false) }
    #expect(blobs.store.look(at: key) == .absent)
    _ = try put("text", as: key)
    #expect(blobs.store.look(at: key) == .present(bytes: 4))
  }

  @Test("a recording's objects go one by one, except its audio, or all together")
  func deletion() throws {
    let id = RecordingID()
    let (audio, waveform) = (ObjectKey(id, "audio.wav"), ObjectKey(id, "waveform-1.pyramid"))
    for key in [audio, waveform] { _ = try put("text", as: key) }
    let other = ObjectKey(RecordingID(), waveform.name)
    _ = try put("other", as: other)
    blobs.delete(waveform)
    blobs.delete(audio)
    #expect(blobs.store.look(at: waveform) == .absent && blobs.store.look(at: audio) == .present(bytes: 4))
    try blobs.remove(id)
    #expect(blobs.store.look(at: audio) == .absent && blobs.store.look(at: other) == .present(bytes: 5))
    #expect(try blobs.makingRoom { () throws(StorageError) in true })
  }

  @Test("everything that belonged to a deleted recording goes, also what no row names")
  func deletedRecording() throws {
    let (recording, job) = try record("sound")
    let token = try #require(try catalog.claim(job.id).written?.token)
    let waveform = ObjectKey(recording.id, "waveform-\(token.name).pyramid")
    _ = try put("points", as: waveform)
    #expect(blobs.offer(try work("map"), as: ObjectKey(recording.id, "audio.wav").map) == 3)
    _ = try catalog.finish(token, with: "{}") { $0.waveformKey = waveform }
    let conversion = ObjectKey(recording.id, "converted-1.mp3")
    let stored = try put("mp3", as: conversion, makesFolder: false)
    try catalog.keep(
      Conversion(recording: recording.id, format: "mp3", key: conversion, bytes: 3, sha256: stored.sha256), limit: 99)
    // What is named stays, however late it is.
    clock.advance(200_000)
    try blobs.removeGarbage(of: catalog)
    let description = try #require(try catalog.recording(recording.id)).descriptionKey
    let all = ["audio.wav", "audio.wav.map", "converted-1.mp3", description.name, waveform.name]
      .map { ObjectKey(recording.id, $0) }
    #expect(all.filter { blobs.store.look(at: $0) == .absent } == [])
    _ = try catalog.deleteRecording(recording.id)
    try blobs.remove(recording.id)
    #expect(all.filter { blobs.store.look(at: $0) != .absent } == [])
    clock.advance(200_000)
    try blobs.removeGarbage(of: catalog)
    #expect(try catalog.dueGarbage().isEmpty)
  }

  @Test("a discarded conversion goes at once from a folder, and from a bucket once it is due")
  func discardedConversions() throws {
    let recording = try record("sound").recording
    let keys = (1...3).map { ObjectKey(recording.id, "converted-\($0).mp3") }
    var discarded: [ObjectKey] = []
    for (number, key) in keys.enumerated() {
      let stored = try put("mp3", as: key, makesFolder: false)
      let format = number == 0 ? "flac" : "mp3"
      discarded += try catalog.keep(
        Conversion(
          recording: recording.id, format: format, key: key, bytes: 3, sha256: stored.sha256,
          usedAt: Timestamp(milliseconds: Int64(number))),
        limit: 6)
    }
    // It was replaced, so the first has room.
    #expect(discarded == [keys[1]])
    let last = try #require(try catalog.conversion(of: recording.id, to: "mp3"))
    discarded += try catalog.keep(last, limit: 3)
    #expect(discarded == [keys[1], keys[0]])
    blobs.deleteDiscarded(discarded)
    let isFolder = !blobs.store.isBucket
    #expect(discarded.map { blobs.store.look(at: $0) == .absent } == [isFolder, isFolder])
    #expect(blobs.store.look(at: keys[2]) == .present(bytes: 3))
    clock.advance(200_000)
    try blobs.removeGarbage(of: catalog)
    #expect(keys.map { blobs.store.look(at: $0) } == [.absent, .absent, .present(bytes: 3)])
    #expect(try catalog.dueGarbage().isEmpty)
  }

  @Test("an upload becomes a recording's first object, with the files that were made from it")
  func adoption() throws {
    let id = RecordingID()
    let (waveform, map) = (ObjectKey(id, "waveform-1.pyramid"), ObjectKey(id, "audio.wav").map)
    let file = try receive("sound")
    let path = file.path
    let stored = try blobs.adopt(
      file, as: id, name: "audio.wav",
      with: [
        MadeFile(path: try work("points"), name: waveform.name, isNeeded: true),
        MadeFile(path: try work("map"), name: map.name, isNeeded: false),
        MadeFile(path: folder("nothing"), name: "working.wav", isNeeded: false),
      ])
    #expect(stored == StoredFile(key: ObjectKey(id, "audio.wav"), bytes: 5, sha256: digest("sound")))
    #expect(try text(stored.key) == "sound" && text(waveform) == "points")
    #expect(blobs.store.look(at: ObjectKey(id, "working.wav")) == .absent)
    #expect(!FileManager.default.fileExists(atPath: path))
    // Readers look for the map beside the sound.
    let audio = try blobs.store.localFile(stored.key)
    #expect(try read(audio.path + ".map") == "map")
  }

  @Test("an upload that can't become a recording leaves nothing")
  func failedAdoption() throws {
    let id = RecordingID()
    let file = try receive("sound")
    let path = file.path
    let points = MadeFile(path: try work("points"), name: "waveform-1.pyramid", isNeeded: true)
    let missing = MadeFile(path: folder("nothing"), name: "working.wav", isNeeded: true)
    #expect(throws: StorageError.self) { try blobs.adopt(file, as: id, name: "audio.wav", with: [points, missing]) }
    for name in ["audio.wav", "waveform-1.pyramid", "working.wav"] {
      #expect(blobs.store.look(at: ObjectKey(id, name)) == .absent)
    }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("the bytes of a resumable upload become an object, and stay until the recording has its row")
  func adoptedPart() throws {
    let (upload, id) = (UploadID(), RecordingID())
    let part = try store.scratch.makePart(of: upload)
    try part.append(Array("sound".utf8).span)
    let stored = try blobs.adopt(part, as: id, name: "audio.wav")
    #expect(stored == StoredFile(key: ObjectKey(id, "audio.wav"), bytes: 5, sha256: digest("sound")))
    store.scratch.removePart(of: upload)
    #expect(try text(stored.key) == "sound")
    let other = try store.scratch.makePart(of: upload)
    try other.append(Array("noise".utf8).span)
    #expect(try store.scratch.lengthOfPart(of: upload) == 5)
    #expect(try text(stored.key) == "sound")
  }

  @Test("what an attempt put goes when it has lost its job, and the result of another stays")
  func results() throws {
    let (recording, job) = try record("sound")
    var tokens: [AttemptToken] = []
    for _ in 0..<3 {
      let token = try #require(try catalog.claim(job.id).written?.token)
      tokens.append(token)
      _ = try put("points", as: ObjectKey(recording.id, "waveform-\(token.name).pyramid"), makesFolder: false)
      if tokens.count < 3 { _ = try catalog.giveBack(token, interrupted: true, hasWritten: true) }
    }
    let keys = tokens.map { ObjectKey(recording.id, "waveform-\($0.name).pyramid") }
    _ = try catalog.finish(tokens[2], with: "{}") { $0.waveformKey = keys[2] }
    blobs.removeResults(of: tokens[0], in: recording.id)
    #expect(keys.map { blobs.store.look(at: $0) == .absent } == [true, false, false])
    // When the grace of lost attempts is over.
    clock.advance(3601)
    try blobs.removeGarbage(of: catalog)
    #expect(keys.map { blobs.store.look(at: $0) == .absent } == [true, true, false])
    #expect(blobs.store.look(at: ObjectKey(recording.id, "audio.wav")) == .present(bytes: 5))
  }

  @Test("an object that a newer one replaces is collected, at once in a folder and in a bucket after an hour")
  func replaced() throws {
    let (recording, _) = try record("sound")
    let keys = (1...2).map { ObjectKey(recording.id, "converted-\($0).mp3") }
    for key in keys {
      let stored = try put("mp3", as: key, makesFolder: false)
      try catalog.keep(
        Conversion(recording: recording.id, format: "mp3", key: key, bytes: 3, sha256: stored.sha256), limit: 99)
    }
    clock.advance(1)
    try blobs.removeGarbage(of: catalog)
    #expect(blobs.store.look(at: keys[0]) == (!blobs.store.isBucket ? .absent : .present(bytes: 3)))
    clock.advance(3600)
    try blobs.removeGarbage(of: catalog)
    #expect(keys.map { blobs.store.look(at: $0) } == [.absent, .present(bytes: 3)])
  }

  @Test("a catalog from a backup, which doesn't have a finished recording, doesn't remove its objects")
  func olderCatalog() throws {
    let path = folder("older.sqlite")
    let (recording, job) = try record("sound")
    let token = try #require(try catalog.claim(job.id).written?.token)
    let waveform = ObjectKey(recording.id, "waveform-\(token.name).pyramid")
    let stray = ObjectKey(recording.id, "working-\(token.name).wav")
    for key in [waveform, stray] { _ = try put("points", as: key) }
    try catalog.checkpoint()
    try FileManager.default.copyItem(atPath: folder("catalog.sqlite"), toPath: path)
    _ = try catalog.finish(token, with: "{}") {
      $0.waveformKey = waveform
      $0.waveformState = .ready
    }
    let older = try Catalog(
      path: path, holder: LeaseHolder(name: "b", terms: LeaseHolder.Terms(), now: { [clock] in clock.now() }))
    clock.advance(200_000)
    #expect(try older.endLostLeases() == 1)
    clock.advance(200_000)
    try blobs.removeGarbage(of: older)
    #expect(try text(waveform) == "points" && text(ObjectKey(recording.id, "audio.wav")) == "sound")
    #expect(blobs.store.look(at: stray) == .absent, "nothing has ever named it")
  }

  @Test("what a description that can't be read may name stays until it can be", arguments: [true, false])
  func unreadableDescription(isNewer: Bool) throws {
    let (recording, job) = try record("sound")
    let token = try #require(try catalog.claim(job.id).written?.token)
    let waveform = ObjectKey(recording.id, "waveform-\(token.name).pyramid")
    _ = try put("points", as: waveform)
    clock.advance(200_000)
    #expect(try catalog.endLostLeases() == 1)
    let described = try #require(try catalog.recording(recording.id))
    let right = described.describedJSON
    // A later version of the service has written the description, or it is damaged.
    let wrong = String(decoding: right, as: UTF8.self).replacing(#","version":1}"#, with: #","version":2}"#)
    try blobs.store.put(Array((isNewer ? wrong : "…").utf8), as: "\(described.descriptionKey)")
    clock.advance(200_000)
    #expect(throws: StorageError.self) { try blobs.removeGarbage(of: catalog) }
    #expect(try blobs.removeGarbage(of: catalog) == 0, "for another day")
    #expect(blobs.store.look(at: waveform) == .present(bytes: 6))
    try blobs.store.put(right, as: "\(described.descriptionKey)")
    clock.advance(86_401)
    #expect(try blobs.removeGarbage(of: catalog) == 1 && blobs.store.look(at: waveform) == .absent)
    #expect(blobs.store.look(at: ObjectKey(recording.id, "audio.wav")) == .present(bytes: 5))
  }

  @Test("a job's failure removes what it made, but never a recording that is described as finished")
  func discarding() throws {
    let unfinished = ObjectKey(RecordingID(), "audio-1.wav")
    _ = try put("half", as: unfinished)
    try blobs.discard(unfinished.recording)
    #expect(blobs.store.look(at: unfinished) == .absent)
    let (recording, _) = try record("sound")
    try blobs.discard(recording.id)
    // In a folder it is set aside.
    let aside = folder("data/orphaned/\(recording.id)/audio.wav")
    #expect(try text(ObjectKey(recording.id, "audio.wav")) ?? read(aside) == "sound")
  }

  private func digest(_ text: String) -> String {
    var digest = SHA256()
    digest.update(Array(text.utf8).span)
    return digest.hexDigest()
  }
}

/// What is about keys and local files, whatever the store.
@Suite struct ObjectKeyTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("what holds a local file is released with it, but not before its path has been used")
  func holding() {
    final class Hold: Sendable {}
    weak var hold: Hold?
    func file() -> LocalFile {
      let new = Hold()
      hold = new
      return LocalFile(path: "/a", holding: new)
    }
    let isHeld = file().withPath { $0 == "/a" && hold != nil }
    #expect(isHeld && hold == nil)
  }

  @Test("the sound of a recording is its audio, or the working copy of audio that isn't read directly")
  func sound() {
    var recording = Recording(
      name: "a", format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 8000, channels: 1, frames: 1))
    #expect(recording.soundKey == nil)
    recording.audioKey = ObjectKey(recording.id, "audio.wav")
    recording.workingKey = ObjectKey(recording.id, "working.wav")
    #expect(recording.soundKey == recording.audioKey)
    recording.media = "{}"
    #expect(recording.soundKey == recording.workingKey)
  }

  @Test("a key is read as it was written, and never leads outside of a recording")
  func keys() {
    let id = RecordingID()
    let key = ObjectKey(id, "waveform-1.pyramid")
    #expect("\(key)" == "recordings/\(id)/waveform-1.pyramid" && ObjectKey("\(key)") == key)
    for text in [
      "", "/", "recordings", "recordings/\(id)", "recordings/\(id)/", "recordings/\(id)/..", "recordings/\(id)/../a",
      "recordings/\(id)/a/b", "recordings/../\(id)", "/recordings/\(id)/a", "jobs/\(id)/a", "recordings/x/a",
      "recordings/\(id)/.a", "recordings/\(id)/a\0b",
    ] {
      #expect(ObjectKey(text) == nil, "\(text)")
    }
  }

  @Test("a data folder has each object at the path of its key")
  func dataFolder() throws {
    let id = RecordingID()
    try FileSystem.makeFolders(folder("old/recordings/\(id.text)"))
    let names = ["audio.mp3", "waveform.pyramid", "working.wav", "converted-0190.mp3"]
    for name in names { try write(name, to: folder("old/recordings/\(id.text)/\(name)")) }
    let store = try MediaStore(directory: folder("old")).objects
    for name in names {
      let key = ObjectKey(id, name)
      #expect(store.localFile(key).path == folder("old/\(key)"))
      #expect(try store.localFile(key).withPath(read) == name)
    }
  }
}
