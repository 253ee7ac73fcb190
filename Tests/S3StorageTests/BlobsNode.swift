import Foundation
import ObjectStore
import PresentRows
import Storage
import Synchronization
import Terms

@testable import S3Storage

/// A store, a catalog, and the nodes that use both.
final class BlobsCluster: Sendable {
  let test: TestStore
  let folder: TemporaryFolder
  let catalog: Catalog
  private let clock: Clock

  init(_ change: (inout S3Settings) -> Void = { _ in }) throws {
    test = try TestStore(change)
    folder = try TemporaryFolder()
    let clock = Clock()
    self.clock = clock
    catalog = try Catalog(
      path: folder.path + "/catalog.sqlite",
      holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms(), now: { clock.now }))
  }

  private final class Clock: Sendable {
    private let seconds = Mutex(0.0)

    var now: Timestamp { Timestamp(milliseconds: 1_800_000_000_000) + seconds.withLock { $0 } }
    func advance(_ more: Double) { seconds.withLock { $0 += more } }
  }

  /// Lets time pass for the catalog.
  func advance(_ seconds: Double) { clock.advance(seconds) }

  /// Opens a copy of the catalog as it was when the file at `path` was copied.
  func catalog(restoredFrom path: String) throws -> Catalog {
    try Catalog(
      path: path, holder: LeaseHolder(name: "node", terms: LeaseHolder.Terms(), now: { [clock] in clock.now }))
  }

  /// What the catalog knows about the bucket.
  let binding = TestBinding(hasContent: true)

  /// Binds the catalog and the bucket to each other.
  func bind() {
    test.store.put(MediaID(Array(identity.id.utf8))?.content ?? [], as: BucketIdentity.key, in: "sounds")
    _ = binding.bind(toMedia: identity.id)
  }

  /// Opens a node with a disk of its own. One that is bound compares the bucket's identity.
  func node(_ name: String, partBytes: Int64 = 5 << 20, isBound: Bool = false) throws -> BlobsNode {
    if isBound { bind() }
    let cache = try BlockCache(directory: "\(folder.path)/\(name)", limitBytes: 1 << 30, client: test.client)
    let scratch = try MediaStore(directory: "\(folder.path)/\(name)-scratch")
    let store = BucketStore(
      test.client, cache: cache, catalog: catalog, partBytes: partBytes, identity: isBound ? identity : nil)
    return BlobsNode(
      store: store, blobs: Blobs(store, in: nil, of: catalog), cache: cache, scratch: scratch, catalog: catalog)
  }

  private let identity = BucketIdentity(id: MediaID().text, bucketName: "s3://sounds/")

  /// The objects in the bucket.
  var objects: [ObjectKey: [UInt8]] {
    let found = test.store.objects(in: "sounds").filter { $0.key != BucketIdentity.key }.map { key, bytes in
      let parts = key.split(separator: "/").map(String.init)
      guard parts.count == 3, let id = RecordingID(parts[1]) else { preconditionFailure("\(key) is in the layout") }
      return (ObjectKey(id, parts[2]), bytes)
    }
    return Dictionary(uniqueKeysWithValues: found)
  }

  /// Calls `body` on a thread that it may block.
  func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await test.blocking { _ in try body() }
  }
}

/// One node: what it does with its store of media.
struct BlobsNode: Sendable {
  let store: BucketStore
  let blobs: Blobs
  let cache: BlockCache
  let scratch: MediaStore
  let catalog: Catalog

  /// Writes a file as a worker does.
  func work(_ bytes: [UInt8]) throws -> String {
    let path = try scratch.makeWorkFolder(of: JobID()) + "/output"
    try scratch.write(bytes, toWorkFile: path)
    return path
  }

  func put(_ bytes: [UInt8], as key: ObjectKey) throws -> StoredFile {
    try blobs.put(try work(bytes), as: key, makesFolder: false)
  }

  /// Takes an upload in, with a map of its sound. The row is inserted only if `isAcknowledged`.
  func upload(_ bytes: [UInt8], isAcknowledged: Bool = true) throws -> Recording {
    let shape = SoundShape(container: "mp3", codec: "mp3", sampleRate: 44_100, channels: 2, estimatedFrames: 9)
    let job = JobID()
    var recording = Recording(name: "talk.mp3", format: shape, waveformJob: job)
    let file = try scratch.receive()
    try file.append(bytes.span)
    let map = MadeFile(path: try work([1, 2, 3]), name: "audio.mp3.map", isNeeded: false)
    let stored = try blobs.adopt(file, as: recording.id, name: "audio.mp3", with: [map])
    (recording.audioKey, recording.bytes, recording.sha256) = (stored.key, stored.bytes, stored.sha256)
    guard isAcknowledged else { return recording }
    try catalog.insert(recording, jobs: [Job(id: job, kind: .waveform, recording: recording.id)])
    return recording
  }

  /// Returns the bytes of an object; nil if there is none.
  func bytes(_ key: ObjectKey) throws -> [UInt8]? {
    try store.localFile(key).withPath { FileManager.default.contents(atPath: $0).map(Array.init) }
  }
}
