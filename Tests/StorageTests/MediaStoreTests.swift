import Dispatch
import Foundation
import PresentRows
import Synchronization
import Terms
import Testing

@testable import Storage

@Suite struct MediaStoreTests {
  let folder: TemporaryFolder
  let store: MediaStore

  init() throws {
    folder = try TemporaryFolder()
    store = try MediaStore(directory: folder("deep/data"))
  }

  @Test("a work folder for uploads is used again, empty, and goes with the end or the next start")
  func intakeFolders() throws {
    let first = try store.takeIntakeFolder()
    let second = try store.takeIntakeFolder()
    #expect(first != second)
    try write("a", to: first + "/a")
    store.giveBack(intakeFolder: first)
    #expect(try store.takeIntakeFolder() == first && FileSystem.names(in: first).isEmpty)
    store.giveBack(intakeFolder: first)
    store.removeIntakeFolders()
    #expect(try FileSystem.names(in: store.incoming).isEmpty)
    _ = try store.takeIntakeFolder()
    var report = SweepReport()
    store.removeHalfFinished(&report)
    #expect(try FileSystem.names(in: store.incoming).isEmpty && report == SweepReport())
  }

  @Test("nothing is received or made after another has taken the lock's name", arguments: ["removed", "replaced"])
  func lostLock(how: String) throws {
    try store.claim()
    #expect(throws: Never.self) { try store.receive().discard() }
    try FileSystem.remove(store.directory + "/lock")
    if how == "replaced" { try write("", to: store.directory + "/lock") }
    #expect(throws: StorageError.claimLost(path: store.directory)) { try store.receive() }
    #expect(throws: StorageError.claimLost(path: store.directory)) { try store.makeFolder(of: RecordingID()) }
    #expect(try FileSystem.names(in: store.incoming).isEmpty)
  }

  @Test("a missing output is not adopted")
  func adoptionOfNothing() throws {
    let path = folder("none")
    #expect(throws: StorageError.io(operation: "open", path: path, errno: ENOENT)) {
      try store.objects.put(path, as: ObjectKey(RecordingID(), "audio.flac"), begins: true)
    }
    #expect(try FileSystem.names(in: store.recordings).isEmpty)
  }

  @Test("a large file is whole, although the disk begins to write it along the way")
  func largeFile() throws {
    let file = try store.receive()
    for number in 0..<40 { try file.append([UInt8](repeating: UInt8(number), count: 1 << 20).span) }
    let digest = file.digest()
    let stored = try store.objects.adopt(file, as: RecordingID(), name: "audio.wav")
    #expect(stored.bytes == 40 << 20 && stored.sha256 == digest)
    let found = try FileDescriptor(path: store.path(of: stored.key), flags: O_RDONLY).digest()
    #expect(found.bytes == stored.bytes && found.sha256 == digest)
  }

  @Test("a discarded file leaves nothing")
  func discard() throws {
    let file = try store.receive()
    try file.append([1].span)
    #expect(try FileSystem.names(in: store.incoming).count == 1)
    file.discard()
    file.discard()
    #expect(try FileSystem.names(in: store.incoming).isEmpty)
  }

  @Test("a file whose last reference is released leaves nothing")
  func abandonment() throws {
    do {
      let file = try store.receive()
      try file.append([1].span)
    }
    #expect(try FileSystem.names(in: store.incoming).isEmpty)
  }

  @Test("a full disk is a separate error, persists, and leaves nothing")
  func diskFull() throws {
    let path = store.incoming + "/" + UUIDv7().text + ".part"
    try write("", to: path)
    // Every write to /dev/full fails with ENOSPC.
    let file = IncomingFile(path: path, file: try FileDescriptor(path: "/dev/full", flags: O_WRONLY))
    #expect(throws: StorageError.diskFull) { try append([1, 2, 3], to: file) }
    #expect(throws: StorageError.diskFull) { try append([], to: file) }
    #expect(file.byteCount == 0)
    let id = RecordingID()
    #expect(throws: StorageError.diskFull) { try store.objects.adopt(file, as: id, name: "audio.wav") }
    #expect(try FileSystem.names(in: store.incoming).isEmpty)
    #expect(try FileSystem.names(in: store.recordings).isEmpty)
  }

  @Test("a file whose bytes can't be made durable never gets its final name")
  func syncBeforeRename() throws {
    let path = store.incoming + "/" + UUIDv7().text + ".part"
    try write("abc", to: path)
    // A device can be written to, but fsync fails on it with EINVAL.
    let file = IncomingFile(path: path, file: try FileDescriptor(path: "/dev/null", flags: O_WRONLY))
    try file.append([1].span)
    #expect(throws: StorageError.io(operation: "fsync", path: "/dev/null", errno: EINVAL)) {
      try store.objects.adopt(file, as: RecordingID(), name: "audio.wav")
    }
    #expect(try FileSystem.names(in: store.recordings).isEmpty)
    #expect(try FileSystem.names(in: store.incoming).isEmpty)
  }

  @Test("a failed upload leaves what its recording's folder held")
  func failureBesideOtherFiles() throws {
    let id = RecordingID()
    try write("dat", to: store.makeFolder(of: id) + "/waveform-1.dat")
    let path = store.incoming + "/" + UUIDv7().text + ".part"
    let file = IncomingFile(path: path, file: try FileDescriptor(path: "/dev/full", flags: O_WRONLY))
    #expect(throws: StorageError.diskFull) { try append([1], to: file) }
    #expect(throws: StorageError.diskFull) { try store.objects.adopt(file, as: id, name: "audio.wav") }
    #expect(try FileSystem.names(in: store.folder(of: id)).sorted() == ["unfinished", "waveform-1.dat"])
  }

  @Test("a full disk and a full quota are the same error", arguments: [ENOSPC, EDQUOT])
  func quota(code: Int32) {
    #expect(StorageError(errno: code, "write", "x") == .diskFull)
  }

  @Test("a removed recording leaves nothing, and removing it again is not an error")
  func removal() throws {
    let id = RecordingID()
    try write("abc", to: store.makeFolder(of: id) + "/audio.wav")
    try FileSystem.makeFolders(store.folder(of: id) + "/a/b")
    try store.remove(id)
    try store.remove(id)
    #expect(try FileSystem.names(in: store.recordings).isEmpty)
    #expect(try FileSystem.names(in: store.removed).isEmpty)
  }

  @Test("removing doesn't follow links out of the folder")
  func links() throws {
    let id = RecordingID()
    try FileSystem.makeFolders(folder("other"))
    try write("precious", to: folder("other/file"))
    try store.makeFolder(of: id)
    try #require(unsafe symlink(folder("other"), store.folder(of: id) + "/link") == 0)
    try store.remove(id)
    #expect(try read(folder("other/file")) == "precious")
  }

  @Test("a removed work folder leaves nothing")
  func workFolder() throws {
    let id = JobID()
    try write("x", to: store.makeWorkFolder(of: id) + "/part")
    try store.makeWorkFolder(of: id)
    store.removeWorkFolder(of: id)
    store.removeWorkFolder(of: id)
    #expect(try FileSystem.names(in: store.jobs).isEmpty)
  }

  @Test("free bytes are those of the disk")
  func freeBytes() throws {
    #expect(try store.freeBytes() > 0)
    #expect(throws: StorageError.io(operation: "statvfs", path: "/none", errno: ENOENT)) {
      try FileSystem.freeBytes(at: "/none")
    }
  }

  @Test("a directory can be claimed once at a time")
  func claim() throws {
    var first: MediaStore? = try MediaStore(directory: folder("claimed"))
    try first?.claim()
    let second = try MediaStore(directory: folder("claimed"))
    #expect(throws: StorageError.inUse(path: folder("claimed"))) { try second.claim(patience: 0) }
    first = nil
    try second.claim()
  }

  @Test("nodes share a folder, each under its own name, and remove only their own leftovers")
  func sharedFolder() throws {
    let shared = folder("shared")
    var one: MediaStore? = try MediaStore(shared: shared, node: "one")
    let two = try MediaStore(shared: shared, node: "two")
    #expect(throws: StorageError.nodeInUse(path: shared + "/nodes/one.lock")) {
      try MediaStore(shared: shared, node: "one")
    }
    _ = try one?.receive()
    let received = try two.receive()
    one = nil
    let again = try MediaStore(shared: shared, node: "one")
    #expect(try FileSystem.names(in: again.incoming).isEmpty)
    #expect(try FileSystem.names(in: two.incoming).count == 1)
    received.discard()
    #expect(throws: StorageError.sharedMedia(path: shared)) { try MediaStore(lookingAt: shared).checkIsDataFolder() }
    try MediaStore(directory: folder("alone")).checkIsDataFolder()
    _ = try Catalog(path: folder("alone/catalog.sqlite"))
    #expect(throws: StorageError.inUse(path: folder("alone"))) {
      try MediaStore(shared: folder("alone"), node: "one")
    }
  }

  @Test("of a shared folder, only what a row names as removed is removed")
  func sharedUpkeep() throws {
    let store = try MediaStore(shared: folder("shared"), node: "one")
    let catalog = try Catalog(path: folder("shared.sqlite"))
    let (kept, deleted, unknown) = (sample(), sample(), RecordingID())
    for id in [kept.id, deleted.id, unknown] { try store.makeFolder(of: id) }
    for recording in [kept, deleted] { try catalog.insert(recording) }
    _ = try catalog.deleteRecording(deleted.id)
    let upload = Upload(length: 9, expiresAt: .now)
    try catalog.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    let stray = UploadID()
    for id in [upload.id, stray] { _ = try store.makePart(of: id) }
    #expect(try SharedUpkeep(catalog: catalog, store: store).run() == 1)
    #expect(try Set(FileSystem.names(in: store.recordings)) == [kept.id.text, unknown.text])
    #expect(try FileSystem.names(in: store.uploads).count == 2)
    try catalog.deleteUpload(upload.id)
    #expect(try SharedUpkeep(catalog: catalog, store: store).run() == 1)
    #expect(try FileSystem.names(in: store.uploads) == ["\(stray).part"])
    #expect(try catalog.removals().isEmpty)
  }

  @Test("in a shared folder, work that a killed node left is cleared away after a day, unless a job continues it")
  func abandonedWork() throws {
    let store = try MediaStore(shared: folder("shared"), node: "one")
    let catalog = try Catalog(path: folder("shared.sqlite"))
    var recording = sample()
    recording.audioKey = ObjectKey(recording.id, "audio.wav")
    try store.makeFolder(of: recording.id)
    let waiting = Job(kind: .waveform, recording: recording.id)
    // Its node was killed before it could write the description.
    try catalog.insert(recording, jobs: [waiting])
    catalog.keepDescriptions(in: store.descriptions) { Issue.record("\($0): \($1)") }
    let (unacknowledged, empty) = (RecordingID(), RecordingID())
    for id in [unacknowledged, empty] { try store.makeFolder(of: id) }
    try write("sound", to: store.folder(of: unacknowledged) + "/audio.wav")
    let over = JobID()
    for id in [waiting.id, over] { try store.makeWorkFolder(of: id) }
    try store.write([1], toWorkFile: store.workFolder(of: over) + "/1-a.pyramid")
    let (begun, received) = (UploadID(), UploadID())
    _ = try store.makePart(of: begun)
    try store.makePart(of: received).append([1].span)
    func folders() throws -> [Set<String>] {
      [try Set(FileSystem.names(in: store.recordings)), try Set(FileSystem.names(in: store.jobs))]
    }
    let all: [Set] = [[recording.id.text, unacknowledged.text, empty.text], [waiting.id.text, over.text]]
    #expect(try SharedUpkeep(catalog: catalog, store: store, now: .now + 86_000).run() == 0)
    #expect(try folders() == all && FileSystem.names(in: store.uploads).count == 2)
    #expect(try !store.isUnfinished(recording.id), "its row says that it was acknowledged")
    let later = SharedUpkeep(catalog: catalog, store: store, now: .now + 87_000)
    #expect(try later.run(createdSince: .now + 60) == 2)
    #expect(try FileSystem.names(in: store.uploads) == ["\(received).part"])
    #expect(try folders() == [all[0], [waiting.id.text]])
    #expect(try later.run() == 2)
    #expect(try folders() == [[recording.id.text], [waiting.id.text]])
    #expect(try FileSystem.names(in: store.orphaned) == [unacknowledged.text], "no row says that it may be removed")
  }

  @Test("a removed upload isn't forgotten while a later writer's file is left")
  func laterWriters() throws {
    let store = try MediaStore(shared: folder("shared"), node: "one")
    let catalog = try Catalog(path: folder("shared.sqlite"))
    let upload = Upload(length: 9, expiresAt: .now)
    try catalog.insert(upload, limits: UploadLimits(total: 9, perClient: 9))
    _ = try store.begin([UploadSegment(upload: upload.id, start: 0, writer: 2)], at: 0)
    try catalog.deleteUpload(upload.id)
    let reconciliation = Reconciliation(catalog: catalog, store: store)
    try reconciliation.forgetRemovals()
    #expect(try catalog.removals() == [upload.id.text])
    store.removeParts(of: upload.id)
    try reconciliation.forgetRemovals()
    #expect(try catalog.removals().isEmpty)
  }

  @Test("several processes may remove the same folder")
  func removedTwice() throws {
    for round in 0..<20 {
      let path = folder("twice\(round)")
      try FileSystem.makeFolders(path + "/inner")
      for name in 0..<40 { try write("x", to: "\(path)/inner/\(name)") }
      let failures = Mutex<[StorageError]>([])
      DispatchQueue.concurrentPerform(iterations: 2) { _ in
        do throws(StorageError) { try FileSystem.remove(path) } catch { failures.withLock { $0.append(error) } }
      }
      #expect(failures.withLock { $0 }.isEmpty)
      #expect(!FileSystem.isFolder(path))
    }
  }

  @Test("the folder that machines share has an ID, which its first user makes")
  func sharedID() throws {
    let first = try MediaStore(shared: folder("shared"), node: "one").sharedID()
    let second = try MediaStore(shared: folder("shared"), node: "two").sharedID()
    #expect(first.isNew && !second.isNew && first.id == second.id)
    #expect(try MediaStore(shared: folder("other"), node: "one").sharedID().id != first.id)
    try write("x", to: folder("shared/media-id"))
    #expect(throws: StorageError.otherMedia(path: folder("shared"))) {
      try MediaStore(shared: folder("shared"), node: "three").sharedID()
    }
  }

  @Test("the segments of an upload are joined in order, without what came after a takeover")
  func segments() throws {
    let store = try MediaStore(shared: folder("shared"), node: "one")
    let id = UploadID()
    let first = UploadSegment(upload: id, start: 0, writer: 1)
    let bytes = try #require(try store.begin([first], at: 0))
    try bytes.append(Array("abcdef".utf8).span)
    let second = UploadSegment(upload: id, start: 3, writer: 2)
    let more = try #require(try store.begin([first, second], at: 3))
    try bytes.append(Array("late".utf8).span)
    try more.append(Array("DEFG".utf8).span)
    try more.truncate(to: 6)
    #expect(more.byteCount == 6)
    let (part, whole) = (try bytes.join(), try more.join())
    #expect(part.byteCount == 10 && part.path != whole.path)
    #expect(try String(contentsOfFile: whole.path, encoding: .utf8) == "abcDEF")
    var sha256 = SHA256()
    sha256.update(Array("abcDEF".utf8).span)
    #expect(try whole.digest() == sha256.hexDigest())
    let missing = UploadSegment(upload: id, start: 99, writer: 3)
    #expect(try store.begin([first, second, missing], at: 99) == nil, "bytes are missing")
    store.removeParts(of: id)
    #expect(try FileSystem.names(in: store.uploads).isEmpty)
  }

  @Test("claiming waits for a claim that is about to end")
  func lateClaim() async throws {
    var first: MediaStore? = try MediaStore(directory: folder("claimed"))
    try first?.claim()
    let (second, hand) = (try MediaStore(directory: folder("claimed")), ManualClock())
    let claiming = Task.detached { try second.claim(clock: hand.clock) }
    await hand.waiting()
    first = nil
    hand.advance(by: 0.01)
    try await claiming.value
  }

  @Test("a directory that can't be created is an error")
  func unusableDirectory() throws {
    try write("a file", to: folder("file"))
    #expect(throws: StorageError.io(operation: "mkdir", path: folder("file/data"), errno: ENOTDIR)) {
      try MediaStore(directory: folder("file/data"))
    }
    #expect(throws: StorageError.io(operation: "mkdir", path: folder("file"), errno: EEXIST)) {
      try MediaStore(directory: folder("file"))
    }
  }
}

/// For use in `#expect`, because a span can't leave its closure.
private func append(_ bytes: [UInt8], to file: IncomingFile) throws {
  try file.append(bytes.span)
}
