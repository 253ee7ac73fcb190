import Foundation
import ObjectStore
import PresentRows
import Synchronization

@testable import S3Storage
@testable import Storage

/// What the nodes of simulations share: a store, a database, and a clock that the test sets. Used by one thread.
final class SimulatedWorld: Sendable {
  let store: S3Server
  let folder: TemporaryFolder
  let database: SQLiteEngine
  private let milliseconds = Atomic<Int64>(1_800_000_000_000)

  init() throws {
    store = try S3Server(buckets: ["sounds"], keys: [TestStore.key])
    folder = try TemporaryFolder()
    database = try SQLiteEngine(path: folder.path + "/catalog.sqlite")
    // Nothing here has to survive a power failure.
    try database.withWriter { try $0.execute("PRAGMA synchronous = OFF") }
  }

  var now: Timestamp { Timestamp(milliseconds: milliseconds.load(ordering: .relaxed)) }

  func advance(_ seconds: Double) { milliseconds.wrappingAdd(Int64(seconds * 1000), ordering: .relaxed) }
}

/// What becomes of a node at a call of the catalog or of the store.
enum CallFate {
  case well
  /// The call is carried out, and the node doesn't hear of it.
  case losesAnswer
  /// The node dies before the call is carried out, or when it has been.
  case diesBefore, diesAfter
}

/// The database as one node reaches it.
final class SimulatedEngine: SQLEngine, @unchecked Sendable {
  // @unchecked: a simulation has one thread at a time that does anything.
  private let database: SQLiteEngine
  /// Decides about each call. `true` is for one that writes.
  var fate: (Bool) -> CallFate = { _ in .well }
  private(set) var isDead = false

  init(_ database: SQLiteEngine) { self.database = database }

  var dialect: SQLDialect { database.dialect }

  /// From now on, no call succeeds.
  func die() { isDead = true }

  private func begin(writes: Bool) throws(StorageError) -> CallFate {
    guard !isDead else { throw .unreachable(detail: "the node is dead") }
    let fate = self.fate(writes)
    guard case .diesBefore = fate else { return fate }
    die()
    throw .unreachable(detail: "the node has died")
  }

  func read<Value>(_ body: (any SQLSession) throws -> Value) throws(StorageError) -> Value {
    _ = try begin(writes: false)
    return try database.read(body)
  }

  func write<Value: Sendable>(
    _ isolation: SQLIsolation, _ body: @Sendable (any SQLSession) throws -> Value
  ) throws(StorageError) -> Value {
    let fate = try begin(writes: true)
    let value = try database.write(isolation, body)
    switch fate {
    case .well, .diesBefore: return value
    case .diesAfter: die()
    case .losesAnswer: break
    }
    throw .outcomeUnknown
  }

  func checkUsable() throws(StorageError) {}
  func eraseTraces(pagesAtOnce: Int) throws(StorageError) {}
  func checkpoint() throws(StorageError) {}
  func close() throws(StorageError) {}
}

/// A node: its process, which may die at any call, and what it has begun.
final class SimulatedNode {
  /// What a node has begun and goes on with later, perhaps much later.
  enum Work {
    /// The audio is in the store; its row isn't in the catalog.
    case recording(Recording)
    /// A job's result isn't in the store yet.
    case claimed(AttemptToken, ObjectKey)
    /// It is in the store, and no row says so.
    case put(AttemptToken, StoredFile, since: Timestamp)
    /// An upload is received.
    case upload(any UploadBytes, Upload)
    /// An upload's bytes have become an object; the recording's row isn't in the catalog.
    case joined(Upload, Recording, since: Timestamp)
  }

  let engine: SimulatedEngine
  let catalog: Catalog
  let store: BucketStore
  let blobs: Blobs
  let spool: S3Spool
  private let scratch: MediaStore
  var work: [Work] = []
  /// How many more calls it lives; nil for any number.
  var callsLeft: Int?

  /// Starts a node in the folder `name`.
  init(_ name: String, in world: SimulatedWorld) throws {
    engine = SimulatedEngine(world.database)
    catalog = Catalog(
      engine: engine, holder: LeaseHolder(name: name, terms: LeaseHolder.Terms(), now: { world.now }))
    let client = try TestStore.client(of: world.store) { $0.attempts = 2 }
    let directory = "\(world.folder.path)/\(name)"
    let cache = try BlockCache(directory: directory, limitBytes: 1 << 30, client: client)
    scratch = try MediaStore(directory: directory + "-scratch")
    store = BucketStore(client, cache: cache, catalog: catalog, partBytes: 5 << 20, senders: 0)
    blobs = Blobs(store, in: nil, of: catalog)
    // At once, because a simulation has one thread.
    spool = S3Spool(client, catalog: catalog, scratch: scratch, objectBytes: 6 << 20, removeSoon: { $0() })
    catalog.keepDescriptions(in: blobs.descriptions) { _, _ in }
  }

  /// The catalog and its descriptions keep each other, and with them files and connections.
  deinit { catalog.descriptions.withLock { $0 = nil } }

  /// Writes a file as a worker does.
  func file(_ bytes: [UInt8]) throws -> String {
    let path = try scratch.makeWorkFolder(of: JobID()) + "/output"
    try scratch.write(bytes, toWorkFile: path)
    return path
  }

  /// Receives a file as a request does.
  func receive(_ bytes: [UInt8]) throws -> IncomingFile {
    let file = try scratch.receive()
    try file.append(bytes.span)
    return file
  }

  /// Removes what is unneeded, as S3Media does.
  func collect() throws {
    try blobs.removeGarbage(of: catalog)
    try spool.removeGarbage()
    try catalog.forgetSettledDeletions()
  }
}
