import Dispatch
import ObjectStore
import PresentRows
import Randomness
import Storage

@testable import S3Storage

typealias TemporaryFolder = PresentRows.TemporaryFolder

/// A store with the bucket `sounds` and a client for it.
struct TestStore {
  static let key = S3Server.Key("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY")
  let store: S3Server
  let client: S3Client

  /// `options` are further ones of the address, and `change` changes the client's settings. By default, pauses are
  /// short, and deadlines so long that a busy machine meets them.
  init(
    prefix: String = "", options: String = "", credentials: CredentialSource? = nil,
    _ change: (inout S3Settings) -> Void = { _ in }
  ) throws {
    store = try S3Server(buckets: ["sounds"], keys: [Self.key])
    client = try Self.client(of: store, prefix: prefix, options: options, credentials: credentials, change)
  }

  static func client(
    of store: S3Server, bucket: String = "sounds", prefix: String = "", options: String = "",
    credentials: CredentialSource? = nil, _ change: (inout S3Settings) -> Void = { _ in }
  ) throws -> S3Client {
    var settings = S3Settings()
    (settings.pauseSeconds, settings.breakSeconds) = (0.001, 0)
    (settings.connectSeconds, settings.requestSeconds, settings.totalSeconds) = (300, 300, 300)
    // Tests count connections, however long they have to wait for their turn.
    settings.idleSeconds = 3600
    change(&settings)
    return S3Client(
      try S3Bucket("s3://\(bucket)\(prefix)?endpoint=\(store.endpoint)\(options)"),
      credentials: try credentials ?? source(), settings: settings)
  }

  static func source(_ secret: String = "wJalrXUtnFEMI/K7MDENG+bPxRfiCY") throws -> CredentialSource {
    try CredentialSource(environment: ["AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secret])
  }

  /// Calls `body` on a thread of its own, because the client blocks.
  func blocking<Value: Sendable>(_ body: @escaping @Sendable (S3Client) throws -> Value) async throws -> Value {
    try await blocking(client, body)
  }

  func blocking<Value: Sendable>(
    _ client: S3Client, _ body: @escaping @Sendable (S3Client) throws -> Value
  ) async throws -> Value {
    try await S3StorageTests.blocking { try body(client) }
  }

  /// Random bytes, which repeat after a prime number of them: parts of several MiB in the wrong place are noticed.
  static func bytes(_ count: Int) -> [UInt8] {
    var generator = TestRandom(for: count)
    let block = (0..<min(count, 65_521)).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    var bytes: [UInt8] = []
    while bytes.count < count { bytes += block.prefix(count - bytes.count) }
    return bytes
  }
}

/// Calls `body` on a thread of its own, because clients block.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    DispatchQueue(label: "s3 test").async { continuation.resume(with: Result { try body() }) }
  }
}
