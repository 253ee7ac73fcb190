import Dispatch
import ObjectStore
import S3Storage
import Testing

@testable import Storage

// One suite for all stores of media: a suite with the trait `.onEveryStore` runs each of its tests once per store.

/// A store of media that the tests run on.
struct BlobsEngine: Sendable {
  /// The name, for messages.
  let name: String
  /// Opens a store in an empty place. `catalog` has the rows about its objects.
  let open: @Sendable (_ folder: TemporaryFolder, _ catalog: Catalog) throws -> Opened

  /// An open store.
  struct Opened: Sendable {
    let blobs: any Blobs
    let scratch: MediaStore
    let descriptions: any DescriptionStore
    /// The server of the objects.
    var server: ObjectStore?
  }

  /// The store of the running test.
  @TaskLocal static var current = Self.folder

  static let folder = Self(name: "folder") { folder, _ in
    let store = try MediaStore(directory: folder("data"))
    return Opened(blobs: store, scratch: store, descriptions: store)
  }

  static let bucket = Self(name: "bucket") { folder, catalog in
    let server = try ObjectStore(buckets: ["media"], keys: [ObjectStore.Key("AKIDEXAMPLE", "secret")])
    let credentials = try CredentialSource(
      environment: ["AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"])
    let client = S3Client(try S3Bucket("s3://media/stillwave?endpoint=\(server.endpoint)"), credentials: credentials)
    let cache = try BlockCache(directory: folder("cache"), limitBytes: 1 << 30, client: client)
    let blobs = S3Blobs(client, cache: cache, catalog: catalog)
    let scratch = try MediaStore(directory: folder("scratch"))
    return Opened(blobs: blobs, scratch: scratch, descriptions: blobs, server: server)
  }

  static let all = [folder, bucket]
}

/// Runs each test once per store, on a thread that it may block: calls of a store wait for a server that answers on the
/// threads of Swift's tasks.
struct EveryStoreTrait: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? { testCase == nil ? nil : self }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    for engine in BlobsEngine.all {
      try await BlobsEngine.$current.withValue(engine) {
        try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
      }
    }
  }
}

extension Trait where Self == EveryStoreTrait {
  /// Runs each test once per store of `BlobsEngine.all`.
  static var onEveryStore: Self { Self() }
}

/// Runs tasks on threads that they may block.
final class BlockingExecutor: TaskExecutor {
  static let shared = BlockingExecutor()
  private let queue = DispatchQueue(label: "blocking tests", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}
