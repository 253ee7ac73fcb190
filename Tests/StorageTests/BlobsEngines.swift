import Dispatch
import Foundation
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
    let blobs: Blobs
    let scratch: MediaStore
    /// The server of the objects.
    var server: S3Server?
  }

  /// The store of the running test.
  @TaskLocal static var current = Self.folder

  static let folder = Self(name: "folder") { folder, catalog in
    let store = try MediaStore(directory: folder("data"))
    return Opened(blobs: Blobs(store, of: catalog), scratch: store)
  }

  static let shared = Self(name: "shared folder") { folder, catalog in
    let store = try MediaStore(shared: folder("data"), node: "a")
    return Opened(blobs: Blobs(store, of: catalog), scratch: store)
  }

  /// Usually a bucket in our own store; with `STILLWAVE_TEST_STORE=s3://BUCKET?endpoint=…` and its key in
  /// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, a new prefix in another one.
  static let bucket = Self(name: "bucket") { folder, catalog in
    var environment = ProcessInfo.processInfo.environment
    var (server, address) = (nil as S3Server?, "")
    if let other = environment["STILLWAVE_TEST_STORE"] {
      let parts = other.split(separator: "?", maxSplits: 1)
      address = "\(parts[0])/\(UInt64.random(in: .min ... .max))?" + (parts.count > 1 ? parts[1] : "")
    } else {
      let own = try S3Server(buckets: ["media"], keys: [S3Server.Key("AKIDEXAMPLE", "secret")])
      (server, address) = (own, "s3://media/stillwave?endpoint=\(own.endpoint)")
      environment = ["AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"]
    }
    let client = S3Client(try S3Bucket(address), credentials: try CredentialSource(environment: environment))
    let cache = try BlockCache(directory: folder("cache"), limitBytes: 1 << 30, client: client)
    let store = BucketStore(client, cache: cache, catalog: catalog)
    let scratch = try MediaStore(directory: folder("scratch"))
    return Opened(blobs: Blobs(store, in: nil, of: catalog), scratch: scratch, server: server)
  }

  static let all = [folder, shared, bucket]
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
