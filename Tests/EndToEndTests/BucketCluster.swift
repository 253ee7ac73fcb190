import Foundation
import PostgresServer
import S3Storage
import Testing

/// A store with one bucket, as a process of its own: it must answer while tests block their threads.
final class BucketServer {
  static let (accessKey, secretKey) = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY")
  let command: Command
  let endpoint: String
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    guard unsafe mkfifo(folder.file("input"), 0o600) == 0 else { throw ToolFailure(description: "no pipe: \(errno)") }
    command = try Command(
      Program.path(of: "BucketServer"), ["sounds", Self.accessKey, Self.secretKey], input: folder.file("input"))
    var line = ""
    let isListening = try eventually { [command] in
      line = try command.output()
      return line.hasSuffix("\n") || !command.isRunning
    }
    guard isListening, line.hasPrefix("http://") else {
      throw ToolFailure(description: "the store did not start: \(line) \(try command.finish().errors)")
    }
    endpoint = String(line.dropLast())
  }

  deinit { command.signal(SIGKILL) }
}

/// A database, a bucket, and nodes that share nothing else.
struct BucketCluster {
  static let media = "s3://sounds/stillwave"
  let folder: TemporaryFolder
  let store: BucketServer
  let url: String
  private let server: PostgresServer.TestServer
  private let database: String
  private let client: S3Client

  init() throws {
    folder = try TemporaryFolder()
    store = try BucketServer()
    server = try #require(PostgresServer.TestServer.shared)
    database = try server.newDatabase()
    url = server.url(database: database)
    let (key, secret) = (BucketServer.accessKey, BucketServer.secretKey)
    try write(
      Array("[default]\naws_access_key_id = \(key)\naws_secret_access_key = \(secret)\n".utf8), to: folder.file("key"))
    client = S3Client(
      try S3Bucket(Self.media, options: [("endpoint", store.endpoint)]),
      credentials: CredentialSource(file: folder.file("key")))
  }

  /// The settings that say where everything is.
  var places: [String] {
    [
      "--catalog", url, "--media", Self.media, "--s3-endpoint", store.endpoint, "--s3-credentials", folder.file("key"),
    ]
  }

  /// The settings of every node.
  var arguments: [String] { places + ["--lease", "3"] }

  /// Compares the catalog with the bucket.
  func check(_ more: [String] = []) throws -> (status: Int32, answer: JSON, errors: String) {
    let finished = try Command(Program.path(), ["check", "--json"] + places + more).finish()
    return (finished.status, (try? JSON(finished.output)) ?? .absent, finished.errors)
  }

  /// Starts a node with a disk of its own.
  func node(_ name: String, _ more: String...) throws -> TestServer {
    try TestServer(with: arguments + ["--node", name] + more, dataDirectory: folder.file(name))
  }

  /// The keys of the bucket's objects.
  func objects() throws -> Set<String> {
    var (keys, token) = (Set<String>(), nil as String?)
    repeat {
      let page = try client.list(token: token)
      keys.formUnion(page.objects.map(\.key))
      token = page.next
    } while token != nil
    return keys
  }

  /// Puts an object as another program would.
  func put(_ bytes: [UInt8], as key: String) throws { try client.put(bytes, as: key) }

  /// The bytes of an object.
  func get(_ key: String) throws -> [UInt8] {
    let path = folder.file("got")
    _ = try client.get(key, into: path)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return [UInt8](try Data(contentsOf: URL(filePath: path)))
  }

  /// Removes an object as another program would.
  func remove(_ key: String) throws { try client.delete(key) }

  /// Returns the rows of a query with one column.
  func rows(_ sql: String) throws -> [String] {
    try server.run(sql, database: database).split(separator: "\n").map(String.init)
  }

  /// The objects that rows name, and those that rows say are unneeded.
  func named() throws -> (needed: Set<String>, unneeded: Set<String>) {
    let sounds = try rows("SELECT unnest(ARRAY[audio_key, working_key]) FROM recordings").filter { !$0.isEmpty }
    let others = try rows(
      """
      SELECT waveform_key FROM recordings WHERE waveform_key IS NOT NULL UNION ALL SELECT key FROM conversions
      UNION ALL SELECT 'uploads/' || upload || '/' || name FROM upload_objects
      UNION ALL SELECT 'media-id' FROM media_folder
      """)
    let descriptions = try rows("SELECT 'recordings/' || id || '/recording-' || version || '.json' FROM recordings")
    let besides = descriptions + sounds.map { $0 + ".map" }
    return (Set(sounds + others), Set(try rows("SELECT object FROM garbage") + besides))
  }
}
