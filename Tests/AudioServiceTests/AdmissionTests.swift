import Foundation
import HTTP
import Storage
import Synchronization
import Testing

@testable import AudioService
@testable import Jobs

/// A connection remembers its last credential; it must not let anyone else in.
@Suite struct AdmissionTests {
  @Test("a key ends for its connections, too: when it is revoked, loses a scope, or gets another secret")
  func revoked() async throws {
    let keyed = try KeyedBench()
    let connection = TestBench.Connection()
    func status(_ method: HTTPMethod = .get, _ path: String = "/v1/recordings") async throws -> Int {
      try await keyed.status(method, path, body: method == .post ? "RIFF" : "", over: connection)
    }
    func write(_ line: String) throws {
      try line.write(toFile: keyed.keysPath, atomically: true, encoding: .utf8)
      keyed.bench.context.reloadAccess()
    }
    for _ in 0..<2 { #expect(try await status() == 200) }
    try write(KeyedBench.line("ours", tenant: "ours", ["read"]))
    #expect(try await status() == 200)
    #expect(try await status(.post) == 403)
    try write(KeyedBench.line("theirs", tenant: "theirs", ["read"]))
    #expect(try await status() == 401)
    try write(KeyedBench.line("ours", tenant: "theirs", ["read"]))
    #expect(try await status() == 200)
    let rotated = KeyLine.replacingHash(
      in: Array(KeyedBench.line("ours", tenant: "ours", ["read"]).utf8.dropLast()), with: RandomText.secret())
    try write(String(decoding: rotated, as: UTF8.self) + "\n")
    #expect(try await status() == 401)
  }

  @Test("clients that share a proxy's connection don't share its credentials")
  func proxied() async throws {
    let keyed = try KeyedBench()
    let (ours, theirs) = (try await keyed.recording(), try await keyed.recording(key: "theirs"))
    let token = try await keyed.token("{\"recording\":\"\(ours)\"}")
    let connection = TestBench.Connection()
    for _ in 0..<2 {
      for (key, id, expected) in [
        ("ours", ours, 200), ("theirs", ours, 404), (nil, ours, 401), ("theirs", theirs, 200), ("ours", theirs, 404),
        ("x", ours, 401), (token, ours, 200), (token, theirs, 403),
      ] as [(String?, RecordingID, Int)] {
        let found = try await keyed.status(.get, "/v1/recordings/\(id)", key: key, over: connection)
        #expect(found == expected, "\(key ?? "none") \(id == ours)")
      }
    }
    let path = "/v1/recordings/\(ours)?token=\(token)"
    for _ in 0..<2 { #expect(try await keyed.status(.get, path, key: nil, over: connection) == 200) }
    for suffix in ["x", "%20", "A"] {
      #expect(try await keyed.status(.get, path + suffix, key: nil, over: connection) == 401)
    }
    await keyed.bench.runner.stop()
  }

  @Test("two credentials in one request are none, whichever comes first")
  func doubled() async throws {
    let keyed = try KeyedBench()
    for other in ["Bearer \(KeyedBench.secrets["theirs"] ?? "")", "Bearer x", "Basic dTpw"] {
      let fields: HTTPFields = ["Authorization": other]
      let connection = TestBench.Connection()
      #expect(try await keyed.status(.get, "/v1/recordings", over: connection) == 200)
      var both = fields
      both.append("Authorization", "Bearer \(KeyedBench.secrets["ours"] ?? "")")
      #expect(try await keyed.status(.get, "/v1/recordings", key: nil, fields: both, over: connection) == 401)
    }
  }

  @Test("a token ends for its connections when its secret is replaced")
  func replacedSecret() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/secrets"
    try "the first secret of tokens\n".write(toFile: path, atomically: true, encoding: .utf8)
    let keyed = try KeyedBench { $0.tokenSecretPath = path }
    let id = try await keyed.recording()
    let token = try await keyed.token("{\"recording\":\"\(id)\"}")
    let connection = TestBench.Connection()
    func status() async throws -> Int {
      try await keyed.status(.get, "/v1/recordings/\(id)?token=\(token)", key: nil, over: connection)
    }
    for _ in 0..<2 { #expect(try await status() == 200) }
    for (secrets, expected) in [
      ("another secret of tokens\nthe first secret of tokens\n", 200), ("another secret of tokens\n", 401),
    ] {
      try secrets.write(toFile: path, atomically: true, encoding: .utf8)
      keyed.bench.context.reloadAccess()
      #expect(try await status() == expected)
    }
    await keyed.bench.runner.stop()
  }

  @Test("what is remembered ends when the key or the token expires, even if the clock is set back then")
  func expired() throws {
    let now = Mutex(Timestamp(milliseconds: 1_000_000))
    let clock = AccessClock { now.withLock { $0 } }
    let tenant = try #require(Tenant("ours"))
    func key(expiresAt: Int64?) -> Key {
      Key(
        id: "a", hash: Key.digest(of: Array("secret".utf8)), tenant: tenant, scopes: [.read],
        expiresAt: expiresAt.map { Timestamp(milliseconds: $0) })
    }
    let text = Array("Bearer secret".utf8)
    let token = AccessToken(id: "t", key: key(expiresAt: nil), exp: 2000)
    let admissions = [
      Caller.Grant.key(key(expiresAt: 2_000_000)), .token(token, key(expiresAt: nil)),
      .token(AccessToken(id: "t", key: key(expiresAt: nil), exp: 3000), key(expiresAt: 2_000_000)),
    ].map { Admission($0, limits: nil, for: text, generation: 1) }
    for admission in admissions {
      #expect(admission.covers(text[...], generation: 1, clock))
      #expect(!admission.covers(text[...], generation: 2, clock))
      #expect(!admission.covers(text.dropLast(), generation: 1, clock))
      for index in text.indices {
        var other = text
        other[index] ^= 1
        #expect(!admission.covers(other[...], generation: 1, clock))
      }
    }
    for milliseconds: Int64 in [2_000_000, 1_500_000] {
      now.withLock { $0 = Timestamp(milliseconds: milliseconds) }
      #expect(admissions.allSatisfy { !$0.covers(text[...], generation: 1, clock) })
    }
  }
}
