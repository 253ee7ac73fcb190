import Glibc
import Terms
import Testing

@testable import Storage

/// What every store of objects does.
@Suite(.onEveryStore) struct ObjectStoreTests {
  private let folder: TemporaryFolder
  private let opened: BlobsEngine.Opened
  private var store: any ObjectStore { opened.blobs.store }
  /// A folder with other media.
  private let other: FolderStore

  init() throws {
    folder = try TemporaryFolder()
    opened = try BlobsEngine.current.open(folder, Catalog(path: folder("catalog.sqlite")))
    other = try MediaStore(directory: folder("other")).objects
  }

  private let id = RecordingID()
  private var key: String { "recordings/\(id)/audio.wav" }
  private var second: String { "recordings/\(id)/recording-1.json" }
  private func sha256(_ text: String) -> String { Hexadecimal.text(SHA256.digest(of: Array(text.utf8))) }
  private func keys(_ prefix: String, limit: Int = .max) throws -> [String] {
    try store.keys(prefix, limit: limit).sorted()
  }

  @Test("an object that was put is found, read, copied, listed, replaced and deleted")
  func lifetime() throws {
    let copy = folder("copy")
    try store.put(Array("sound".utf8), as: key, begins: true)
    try store.put([1], as: second)
    #expect(try store.look(key)?.bytes == 5)
    #expect(try store.contents(of: key, limit: 3) == Array("sou".utf8))
    #expect(try store.contents(of: key, limit: 1 << 20) == Array("sound".utf8))
    for inPieces in [true, false] {
      #expect(try store.sha256(of: key, inPieces: inPieces) { _ in true } == sha256("sound"))
    }
    #expect(try store.sha256(of: key, inPieces: true) { _ in false } == nil)
    #expect(try store.copy(key, to: copy) == FoundObject(bytes: 5, sha256: sha256("sound")))
    #expect(try read(copy) == "sound")
    if let path = store.path(of: key) { #expect(try read(path) == "sound") }
    #expect(store.isBucket == (opened.blobs.folder == nil) && !store.isFailing)
    try store.checkReachable()
    #expect(try keys("recordings/") == [key, second].sorted())
    #expect(try keys("recordings/\(id)/recording-") == [second])
    #expect(try keys("recordings/", limit: 1).count == 1 && store.hasRecordings())
    try store.put(Array("other".utf8), as: key)
    #expect(try store.contents(of: key, limit: 9) == Array("other".utf8))
    for _ in 0..<2 { try store.delete(key) }
    #expect(try store.look(key) == nil)
    try store.sync()
    try store.discardUnfinished()
  }

  @Test("several files become objects together; one that isn't needed may be missing, and one may stay where it is")
  func files() throws {
    let folder = try opened.scratch.makeWorkFolder(of: JobID())
    for name in ["one", "two", "three"] { try write(name, to: "\(folder)/\(name)") }
    var files = ["one", "two", "three", "absent"].map {
      NewObject(.file("\(folder)/\($0)"), as: "recordings/\(id)/\($0)", sha256: $0 == "two" ? sha256($0) : nil)
    }
    files[0].wantsSHA256 = true
    files[1].keepsFile = true
    files[3].isNeeded = false
    let found = try store.put(files, begins: true)
    #expect(found[0] == FoundObject(bytes: 3, sha256: sha256("one")))
    #expect(found[1] == FoundObject(bytes: 3, sha256: sha256("two")) && found[2]?.bytes == 5 && found[3] == nil)
    #expect(try keys("recordings/") == files[0..<3].map(\.key).sorted())
    #expect(try FileSystem.names(in: folder) == ["two"])
    files[3].isNeeded = true
    #expect(throws: StorageError.self) { try store.put([files[3]], begins: false) }
  }

  @Test("a store has nothing under a key that was never used, and says so")
  func absence() throws {
    #expect(try store.look(key) == nil)
    #expect(try store.contents(of: key, limit: 9) == nil)
    #expect(try store.copy(key, to: folder("copy")) == nil)
    #expect(try folder.contents().contains("copy") == false)
    #expect(try store.keys("recordings/\(id)/", limit: 9) == [] && !store.hasRecordings())
    for inPieces in [true, false] {
      let error = #expect(throws: StorageError.self) { try store.sha256(of: key, inPieces: inPieces) { _ in true } }
      #expect(error?.isMissing == true)
    }
    #expect(try store.take([ObjectPiece(key)], of: other, as: key) { _ in true } == nil)
    // A copy that can't be written isn't a missing object.
    try store.put([1], as: key, begins: true)
    #expect(throws: StorageError.self) { try store.copy(key, to: folder("absent/copy")) }
  }

  @Test("a store takes another's object, or a part, unless it isn't the expected one")
  func taking() throws {
    try other.put(Array("sound".utf8), as: key, begins: true)
    let found = FoundObject(bytes: 5, sha256: sha256("sound"))
    #expect(try store.take([ObjectPiece(key)], of: other, as: key) { $0.bytes == 4 } == found)
    #expect(try store.look(key) == nil)
    #expect(try store.take([ObjectPiece(key)], of: other, as: key) { $0 == found } == found)
    #expect(try store.contents(of: key, limit: 9) == Array("sound".utf8))
    let part = "uploads/\(UploadID())"
    #expect(try store.take([ObjectPiece(key, 1..<4)], of: other, as: part) { _ in true }?.bytes == 3)
    #expect(try store.contents(of: part, limit: 9) == Array("oun".utf8))
    #expect(try store.take([ObjectPiece(key, 1..<9)], of: other, as: second) { _ in true } == nil)
    #expect(try store.look(second) == nil)
    // A folder takes what is in several objects.
    let both = [ObjectPiece(key, 0..<2), ObjectPiece(part)]
    #expect(try other.take(both, of: store, as: second) { _ in true }?.bytes == 5)
    #expect(try other.contents(of: second, limit: 9) == Array("sooun".utf8))
    #expect(try other.take(both + [ObjectPiece("uploads/absent")], of: store, as: "uploads/x") { _ in true } == nil)
  }

  @Test("a store has no ID until it gets one, and keeps it")
  func identity() throws {
    #expect(try store.mediaID() == nil)
    let id = try store.makeMediaID(nil)
    #expect(try store.mediaID() == id)
    #expect(try store.makeMediaID(MediaID().text) == id)
  }
}

extension StorageError {
  fileprivate var isMissing: Bool { if case .io(_, _, ENOENT) = self { true } else { false } }
}
