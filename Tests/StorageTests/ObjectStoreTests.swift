import Glibc
import ObjectStore
import Terms
import Testing

@testable import S3Storage
@testable import Storage

/// What every store of objects does: a folder and a bucket.
@Suite struct ObjectStoreTests {
  enum Kind: CaseIterable, Sendable { case folder, bucket }

  /// An empty store of some kind, and a folder with other media.
  private struct Places: Sendable {
    let folder: TemporaryFolder
    let store: any ObjectStore
    let other: FolderStore
    private let server: S3Server

    init(_ kind: Kind) throws {
      folder = try TemporaryFolder()
      server = try S3Server(buckets: ["media"], keys: [S3Server.Key("AKIDEXAMPLE", "secret")])
      other = FolderStore(try MediaStore(directory: folder("other")))
      guard kind == .bucket else {
        store = FolderStore(try MediaStore(shared: folder("media"), node: "a"))
        return
      }
      let credentials = try CredentialSource(
        environment: ["AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"])
      store = try BucketStore(
        in: S3Bucket("s3://media/stillwave?endpoint=\(server.endpoint)"), credentials: credentials,
        catalog: Catalog(path: folder("catalog.sqlite")))
    }

    func keys(_ prefix: String, limit: Int = .max) throws -> [String] { try store.keys(prefix, limit: limit).sorted() }
  }

  /// Runs a test on a thread that it may block.
  private func run(_ kind: Kind, _ body: @escaping @Sendable (Places) throws -> Void) async throws {
    let places = try Places(kind)
    try await withTaskExecutorPreference(BlockingExecutor.shared) { @Sendable () async throws in try body(places) }
  }

  private static let id = RecordingID()
  private static let (key, second) = ("recordings/\(id)/audio.wav", "recordings/\(id)/recording-1.json")
  private static func sha256(_ text: String) -> String { Hexadecimal.text(SHA256.digest(of: Array(text.utf8))) }

  @Test("an object that was put is found, read, copied, listed, replaced and deleted", arguments: Kind.allCases)
  func lifetime(kind: Kind) async throws {
    try await run(kind) { places in
      let (store, key, copy) = (places.store, Self.key, places.folder("copy"))
      try store.put(Array("sound".utf8), as: key)
      try store.put([1], as: Self.second)
      #expect(try store.look(key)?.bytes == 5)
      #expect(try store.contents(of: key, limit: 3) == Array("sou".utf8))
      #expect(try store.contents(of: key, limit: 1 << 20) == Array("sound".utf8))
      for inPieces in [true, false] {
        #expect(try store.sha256(of: key, inPieces: inPieces) { _ in true } == Self.sha256("sound"))
      }
      #expect(try store.sha256(of: key, inPieces: true) { _ in false } == nil)
      #expect(try store.copy(key, to: copy) == FoundObject(bytes: 5, sha256: Self.sha256("sound")))
      #expect(try read(copy) == "sound")
      if let path = store.path(of: key) { #expect(try read(path) == "sound") }
      #expect(store.isBucket == (kind == .bucket))
      #expect(try places.keys("recordings/") == [key, Self.second].sorted())
      #expect(try places.keys("recordings/\(Self.id)/recording-") == [Self.second])
      #expect(try places.keys("recordings/", limit: 1).count == 1 && store.hasRecordings())
      try store.put(Array("other".utf8), as: key)
      #expect(try store.contents(of: key, limit: 9) == Array("other".utf8))
      for _ in 0..<2 { try store.delete(key) }
      #expect(try store.look(key) == nil)
      try store.sync()
    }
  }

  @Test("a store has nothing under a key that was never used, and says so", arguments: Kind.allCases)
  func absence(kind: Kind) async throws {
    try await run(kind) { places in
      let (store, key) = (places.store, Self.key)
      #expect(try store.look(key) == nil)
      #expect(try store.contents(of: key, limit: 9) == nil)
      #expect(try store.copy(key, to: places.folder("copy")) == nil)
      #expect(try places.folder.contents().contains("copy") == false)
      #expect(try store.keys("recordings/\(Self.id)/", limit: 9) == [] && !store.hasRecordings())
      for inPieces in [true, false] {
        let error = #expect(throws: StorageError.self) { try store.sha256(of: key, inPieces: inPieces) { _ in true } }
        #expect(error?.isMissing == true)
      }
      #expect(try store.take([ObjectPiece(key)], of: places.other, as: key) { _ in true } == nil)
      // A copy that can't be written isn't a missing object.
      try store.put([1], as: key)
      #expect(throws: StorageError.self) { try store.copy(key, to: places.folder("absent/copy")) }
    }
  }

  @Test("a store takes another's object, or a part, unless it isn't the expected one", arguments: Kind.allCases)
  func taking(kind: Kind) async throws {
    try await run(kind) { places in
      let (store, other, key) = (places.store, places.other, Self.key)
      try other.put(Array("sound".utf8), as: key)
      let found = FoundObject(bytes: 5, sha256: Self.sha256("sound"))
      #expect(try store.take([ObjectPiece(key)], of: other, as: key) { $0.bytes == 4 } == found)
      #expect(try store.look(key) == nil)
      #expect(try store.take([ObjectPiece(key)], of: other, as: key) { $0 == found } == found)
      #expect(try store.contents(of: key, limit: 9) == Array("sound".utf8))
      let part = "uploads/\(UploadID())"
      #expect(try store.take([ObjectPiece(key, 1..<4)], of: other, as: part) { _ in true }?.bytes == 3)
      #expect(try store.contents(of: part, limit: 9) == Array("oun".utf8))
      #expect(try store.take([ObjectPiece(key, 1..<9)], of: other, as: Self.second) { _ in true } == nil)
      #expect(try store.look(Self.second) == nil)
      // A folder takes what is in several objects.
      let both = [ObjectPiece(key, 0..<2), ObjectPiece(part)]
      #expect(try other.take(both, of: store, as: Self.second) { _ in true }?.bytes == 5)
      #expect(try other.contents(of: Self.second, limit: 9) == Array("sooun".utf8))
      #expect(try other.take(both + [ObjectPiece("uploads/absent")], of: store, as: "uploads/x") { _ in true } == nil)
    }
  }

  @Test("a store has no ID until it gets one, and keeps it", arguments: Kind.allCases)
  func identity(kind: Kind) async throws {
    try await run(kind) { places in
      #expect(try places.store.mediaID() == nil)
      let id = try places.store.makeMediaID(nil)
      #expect(try places.store.mediaID() == id)
      #expect(try places.store.makeMediaID(MediaID().text) == id)
    }
  }
}

extension StorageError {
  fileprivate var isMissing: Bool { if case .io(_, _, ENOENT) = self { true } else { false } }
}
