import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService

/// A service with keys of two tenants, for tests in the same process.
struct KeyedBench {
  let bench: TestBench
  let folder: TemporaryFolder
  /// The secrets, by the ID of the key.
  static let secrets = Dictionary(
    uniqueKeysWithValues: ["ours", "reader", "writer", "theirs", "root", "old", "ours2"].map {
      ($0, "secret-of-\($0)-0123456789-0123456789-0123456789")
    })

  static func line(
    _ id: String, tenant: String, _ scopes: [String], expires: String? = nil, limits: [String: Double]? = nil
  ) -> String {
    let line = KeyLine(
      id: id, secret: secrets[id] ?? id, tenant: tenant, scopes: scopes, limits: limits, expiresAt: expires)
    return String(decoding: line.bytes, as: UTF8.self) + "\n"
  }

  /// Lines of a file with every kind of key.
  static func lines(limits: [String: Double]? = nil) -> String {
    line("ours", tenant: "ours", ["read", "write", "delete"], limits: limits)
      + line("reader", tenant: "ours", ["read"]) + line("writer", tenant: "ours", ["write"])
      + line("theirs", tenant: "theirs", ["read", "write", "delete"])
      + line("root", tenant: "", ["admin"])
      + line("old", tenant: "ours", ["read", "write", "delete"], expires: "2020-01-01T00:00:00Z")
  }

  init(
    _ lines: String = KeyedBench.lines(), script: String = "finish", tokenSecrets: String? = nil,
    _ change: (inout Configuration) -> Void = { _ in }, engine: (any SQLEngine) -> any SQLEngine = { $0 }
  ) throws {
    let folder = try TemporaryFolder()
    self.folder = folder
    let path = folder.path + "/keys.jsonl"
    try lines.write(toFile: path, atomically: true, encoding: .utf8)
    let secretsPath = folder.path + "/token-secrets"
    try tokenSecrets?.write(toFile: secretsPath, atomically: true, encoding: .utf8)
    bench = try TestBench(
      script: script, in: folder,
      { configuration in
        configuration.keysPath = path
        if tokenSecrets != nil { configuration.tokenSecretPath = secretsPath }
        change(&configuration)
      }, engine: engine)
  }

  var keysPath: String { folder.path + "/keys.jsonl" }

  /// Replaces the file of keys, and has the service read it.
  func replaceKeys(_ lines: String) throws {
    try lines.write(toFile: keysPath, atomically: true, encoding: .utf8)
    bench.context.reloadAccess()
  }

  /// Gives the key of a line another secret, as `stillwave keys rotate` does, and has the service read that.
  func rotate(_ id: String, to secret: String, keepingOldUntil end: Timestamp? = nil) throws {
    let lines = try KeyFile(path: keysPath).keys.map { key in
      key.id == id
        ? KeyLine.rotating(key, to: secret, keepingOldUntil: end)
        : KeyLine.rotating(key, to: Self.secrets[key.id] ?? key.id)
    }
    try replaceKeys(lines.map { String(decoding: $0.bytes, as: UTF8.self) + "\n" }.joined())
  }

  /// Replaces the file of `tokenSecrets`, and has the service read it.
  func replaceSecrets(_ lines: String) throws {
    try lines.write(toFile: folder.path + "/token-secrets", atomically: true, encoding: .utf8)
    bench.context.reloadAccess()
  }

  func respond(
    _ method: HTTPMethod, _ target: String, key: String? = "ours", fields: HTTPFields = [:], body: String = "",
    from peer: String = "in-process"
  ) async throws -> HTTPResponse {
    var fields = fields
    if let key { fields["Authorization"] = "Bearer \(Self.secrets[key] ?? key)" }
    if target.hasPrefix("/v1/uploads") { fields["Tus-Resumable"] = "1.0.0" }
    return try await bench.respond(method, target, fields: fields, body: body, from: peer)
  }

  func status(
    _ method: HTTPMethod, _ target: String, key: String? = "ours", fields: HTTPFields = [:], body: String = "",
    from peer: String = "in-process"
  ) async throws -> Int {
    try await respond(method, target, key: key, fields: fields, body: body, from: peer).status.code
  }

  /// Returns a member of the JSON object in a response.
  static func member(_ name: String, of response: HTTPResponse) async throws -> String {
    let object = try JSONSerialization.jsonObject(with: Data(try await response.body.collect())) as? [String: Any]
    return try #require(object?[name] as? String, "\(object ?? [:])")
  }

  /// Uploads a recording with a key and returns its ID.
  func recording(key: String = "ours") async throws -> RecordingID {
    let made = try await respond(.post, "/v1/recordings", key: key, body: "RIFF")
    return try #require(RecordingID(try await Self.member("id", of: made)))
  }

  /// Mints a token with a key.
  func token(_ body: String, key: String = "ours") async throws -> String {
    try await Self.member("token", of: try await respond(.post, "/v1/tokens", key: key, body: body))
  }
}
