import Foundation
import Synchronization
import Testing

@testable import AudioService
@testable import HTTP
@testable import Jobs
@testable import Storage

/// The service remembers valid credentials; that must not let anyone else in.
@Suite struct AdmissionTests {
  @Test("a key that was revoked, narrowed, or rotated stops working at once")
  func revoked() async throws {
    let keyed = try KeyedBench()
    func status(_ method: HTTPMethod = .get, _ path: String = "/v1/recordings") async throws -> Int {
      try await keyed.status(method, path, body: method == .post ? "RIFF" : "")
    }
    for _ in 0..<2 { #expect(try await status() == 200) }
    try keyed.replaceKeys(KeyedBench.line("ours", tenant: "ours", ["read"]))
    #expect(try await status() == 200)
    #expect(try await status(.post) == 403)
    try keyed.replaceKeys(KeyedBench.line("theirs", tenant: "theirs", ["read"]))
    #expect(try await status() == 401)
    try keyed.replaceKeys(KeyedBench.line("ours", tenant: "theirs", ["read"]))
    #expect(try await status() == 200)
    try keyed.rotate("ours", to: RandomText.secret())
    #expect(try await status() == 401)
  }

  @Test("both secrets of a key are valid until the chosen time, and then the new one")
  func overlap() async throws {
    let keyed = try KeyedBench()
    let next = ["the second secret of thirty-two characters", "the third secret of thirty-two characters"]
    func statuses() async throws -> [Int] {
      var all: [Int] = []
      for key in ["ours"] + next { all.append(try await keyed.status(.get, "/v1/recordings", key: key)) }
      return all
    }
    #expect(try await statuses() == [200, 401, 401])
    let end = Timestamp.now + 86_400
    try keyed.rotate("ours", to: next[0], keepingOldUntil: end)
    for _ in 0..<2 { #expect(try await statuses() == [200, 200, 401]) }
    keyed.bench.catalog.note(clock: end)
    #expect(try await statuses() == [401, 200, 401])
    try keyed.rotate("ours", to: next[1], keepingOldUntil: end + 86_400)
    #expect(try await statuses() == [401, 200, 200])
    try keyed.rotate("ours", to: next[1])
    #expect(try await statuses() == [401, 401, 200])
  }

  /// A body in two pieces. Something happens before the second.
  private final class PausedBody: BodySource {
    private let pieces: Mutex<[String]>
    private let pause: @Sendable () -> Void

    init(_ pieces: [String], pause: @escaping @Sendable () -> Void) {
      self.pieces = Mutex(pieces)
      self.pause = pause
    }

    func readBody() async throws(RequestBodyError) -> [UInt8]? {
      let (piece, isSecond) = pieces.withLock { ($0.isEmpty ? nil : $0.removeFirst(), $0.isEmpty) }
      if piece != nil, isSecond { pause() }
      return piece.map { Array($0.utf8) }
    }

    func start(_ reader: @escaping @Sendable () async -> Void) { Task(operation: reader) }
  }

  private func status(
    _ method: HTTPMethod, _ path: String, _ fields: HTTPFields, _ body: PausedBody, _ keyed: KeyedBench
  ) async throws -> Int {
    var fields = fields
    fields["Authorization"] = "Bearer \(KeyedBench.secrets["ours"] ?? "")"
    let request = HTTPRequest(
      head: RequestHead(
        method: method, target: try RequestTarget(parsing: Array(path.utf8)[...], method: method), fields: fields),
      body: RequestBody(declaredLength: nil, source: body), peer: "in-process", id: "a-body-with-a-pause")
    return try await keyed.bench.responder.respond(to: request).response.status.code
  }

  @Test("what a key has begun that is revoked before its body has ended changes nothing", arguments: [true, false])
  func revokedMeanwhile(isRevoked: Bool) async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    let made = try await keyed.respond(.post, "/v1/uploads", fields: ["Upload-Length": "8"])
    let upload = try #require(made.fields["Location"])
    let tus: HTTPFields = ["Content-Type": Tus.contentType, "Upload-Offset": "0", "Tus-Resumable": "1.0.0"]
    for (method, path, fields, pieces, status) in [
      (.post, "/v1/recordings", [:], ["RI", "FF"], 201), (.patch, upload, tus, ["RI", "FFRIFF"], 204),
      (.patch, "/v1/recordings/\(id)", [:], ["{\"name\":", "\"b\"}"], 200),
      (.post, "/v1/recordings/\(id)/labels", [:], ["{\"labels\":", "[{\"start\":0,\"end\":1,\"text\":\"a\"}]}"], 201),
    ] as [(HTTPMethod, String, HTTPFields, [String], Int)] {
      let body = PausedBody(pieces) {
        guard isRevoked else { return }
        do { try keyed.replaceKeys(KeyedBench.line("theirs", tenant: "theirs", ["read"])) } catch {
          Issue.record(error)
        }
      }
      let answer = try await self.status(method, path, fields, body, keyed)
      #expect(answer == (isRevoked ? 401 : status), "\(method) \(path)")
      try keyed.replaceKeys(KeyedBench.lines())
    }
    let recordings = try keyed.bench.catalog.recordings(limit: 9)
    #expect(recordings.count == (isRevoked ? 1 : 3) && recordings.contains { $0.name == "b" } != isRevoked)
    #expect(try keyed.bench.catalog.labelTracks(of: id).count == (isRevoked ? 0 : 1))
    // Only what was sent with a valid key counts.
    let head = try await keyed.respond(.head, upload)
    #expect(head.fields["Upload-Offset"] == (isRevoked ? "2" : "8"))
    await keyed.bench.runner.stop()
  }

  @Test("a request that waits for a job isn't answered with it if its key is revoked", arguments: [true, false])
  func revokedWhileWaiting(isRevoked: Bool) async throws {
    let keyed = try KeyedBench(script: "[ $command != waveform ] || read -r line < \"$folder/hold\"; finish")
    let hold = keyed.folder.path + "/hold"
    let isMade = unsafe mkfifo(hold, 0o600) == 0
    try #require(isMade)
    let id = try await keyed.recording()
    let job = try #require(try keyed.bench.catalog.recording(id)?.waveformJob)
    await keyed.bench.begun(job)
    async let waiting = keyed.status(.get, "/v1/jobs/\(job)?wait=60")
    try await keyed.bench.eventually { keyed.bench.runner.live.waiterCount(of: job) == 1 }
    if isRevoked { try keyed.replaceKeys(KeyedBench.line("theirs", tenant: "theirs", ["read"])) }
    try await keyed.bench.letThrough(hold)
    #expect(try await waiting == (isRevoked ? 401 : 200))
    await keyed.bench.runner.stop()
  }

  @Test("a credential that reaches its own end while a request is under way doesn't end that, even if the keys change")
  func expiredMeanwhile() async throws {
    let end = Timestamp.now + 3600
    let line = KeyedBench.line("ours", tenant: "ours", ["write"], expires: end.rfc3339)
    let keyed = try KeyedBench(line)
    let body = PausedBody(["RI", "FF"]) {
      keyed.bench.catalog.note(clock: end + 1)
      do { try keyed.replaceKeys(line + KeyedBench.line("theirs", tenant: "theirs", ["read"])) } catch {
        Issue.record(error)
      }
    }
    #expect(try await status(.post, "/v1/recordings", [:], body, keyed) == 201)
    #expect(try await keyed.status(.post, "/v1/recordings", body: "RIFF") == 401)
  }

  @Test("clients that alternate never get each other's access")
  func proxied() async throws {
    let keyed = try KeyedBench()
    let (ours, theirs) = (try await keyed.recording(), try await keyed.recording(key: "theirs"))
    let token = try await keyed.token("{\"recording\":\"\(ours)\"}")
    for _ in 0..<2 {
      for (key, id, expected) in [
        ("ours", ours, 200), ("theirs", ours, 404), (nil, ours, 401), ("theirs", theirs, 200), ("ours", theirs, 404),
        ("x", ours, 401), (token, ours, 200), (token, theirs, 403),
      ] as [(String?, RecordingID, Int)] {
        let found = try await keyed.status(.get, "/v1/recordings/\(id)", key: key)
        #expect(found == expected, "\(key ?? "none") \(id == ours)")
      }
    }
    let path = "/v1/recordings/\(ours)?token=\(token)"
    for _ in 0..<2 { #expect(try await keyed.status(.get, path, key: nil) == 200) }
    for suffix in ["x", "%20", "A"] {
      #expect(try await keyed.status(.get, path + suffix, key: nil) == 401)
    }
    await keyed.bench.runner.stop()
  }

  @Test("a credential counts only where it may be, whatever is remembered")
  func place() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    let (key, token) = (KeyedBench.secrets["ours"] ?? "", try await keyed.token("{\"recording\":\"\(id)\"}"))
    let path = "/v1/recordings/\(id)"
    for _ in 0..<2 {
      #expect(try await keyed.status(.get, path) == 200)
      for query in ["Bearer%20\(key)", key] {
        #expect(try await keyed.status(.get, path + "?token=\(query)", key: nil) == 401)
      }
      #expect(try await keyed.status(.get, path + "?token=\(token)", key: nil) == 200)
      let fields: HTTPFields = ["Authorization": token]
      #expect(try await keyed.status(.get, path, key: nil, fields: fields) == 401)
    }
    await keyed.bench.runner.stop()
  }

  @Test("a request with two fields Authorization gets 401, in either order")
  func doubled() async throws {
    let keyed = try KeyedBench()
    let own = "Bearer \(KeyedBench.secrets["ours"] ?? "")"
    for other in ["Bearer \(KeyedBench.secrets["theirs"] ?? "")", "Bearer x", "Basic dTpw"] {
      for values in [[own, other], [other, own]] {
        #expect(try await keyed.status(.get, "/v1/recordings") == 200)
        var both = HTTPFields()
        for value in values { both.append("Authorization", value) }
        #expect(try await keyed.status(.get, "/v1/recordings", key: nil, fields: both) == 401)
      }
    }
  }

  @Test("a token stops working at once when its secret is removed")
  func replacedSecret() async throws {
    let keyed = try KeyedBench(tokenSecrets: "the first secret of tokens\n")
    let id = try await keyed.recording()
    let token = try await keyed.token("{\"recording\":\"\(id)\"}")
    func status() async throws -> Int {
      try await keyed.status(.get, "/v1/recordings/\(id)?token=\(token)", key: nil)
    }
    for _ in 0..<2 { #expect(try await status() == 200) }
    for (secrets, expected) in [
      ("another secret of tokens\nthe first secret of tokens\n", 200), ("another secret of tokens\n", 401),
    ] {
      try keyed.replaceSecrets(secrets)
      #expect(try await status() == expected)
    }
    await keyed.bench.runner.stop()
  }

  @Test("a remembered key or token expires, even if the clock is set back then")
  func expired() throws {
    let now = Mutex(Timestamp(milliseconds: 1_000_000))
    let clock = AccessClock { now.withLock { $0 } }
    let tenant = try #require(Tenant("ours"))
    func key(expiresAt: Int64?) -> Key {
      Key(
        id: "a", hash: Key.digest(of: Array("secret".utf8)), tenant: tenant, scopes: [.read],
        expiresAt: expiresAt.map { Timestamp(milliseconds: $0) })
    }
    func secret(expiresAt: Int64?) -> Key.Secret {
      Key.Secret(hash: [], expiresAt: expiresAt.map { Timestamp(milliseconds: $0) })
    }
    let text = Array("Bearer secret".utf8)
    let token = AccessToken(id: "t", key: key(expiresAt: nil), exp: 2000)
    let admissions = [
      Caller.Grant.key(key(expiresAt: 2_000_000), secret(expiresAt: nil)),
      .key(key(expiresAt: nil), secret(expiresAt: 2_000_000)), .token(token, key(expiresAt: nil)),
      .token(AccessToken(id: "t", key: key(expiresAt: nil), exp: 3000), key(expiresAt: 2_000_000)),
    ].map { Admission($0, limits: nil, for: .field(text[...]), generation: 1) }
    for admission in admissions {
      #expect(admission.covers(.field(text[...]), generation: 1, clock))
      #expect(!admission.covers(.parameter(text), generation: 1, clock))
      #expect(!admission.covers(.field(text[...]), generation: 2, clock))
      #expect(!admission.covers(.field(text.dropLast()), generation: 1, clock))
      for index in text.indices {
        var other = text
        other[index] ^= 1
        #expect(!admission.covers(.field(other[...]), generation: 1, clock))
      }
    }
    for milliseconds: Int64 in [2_000_000, 1_500_000] {
      now.withLock { $0 = Timestamp(milliseconds: milliseconds) }
      #expect(admissions.allSatisfy { !$0.covers(.field(text[...]), generation: 1, clock) })
    }
  }
}
