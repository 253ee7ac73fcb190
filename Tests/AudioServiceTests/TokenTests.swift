import Foundation
import HTTP
import Testing

@testable import AudioService
@testable import Storage

@Suite struct TokenTests {
  @Test func aTokenReadsItsRecordingAndNothingElse() async throws {
    let keyed = try KeyedBench()
    let (id, other) = (try await keyed.recording(), try await keyed.recording())
    let recording = try #require(try keyed.bench.catalog.recording(id))
    _ = try await keyed.bench.finished(#require(recording.waveformJob))
    try keyed.bench.makeWaveform(of: recording)
    let job = try #require(recording.waveformJob)
    let token = try await keyed.token("{\"recording\":\"\(id)\"}")
    let path = "/v1/recordings/\(id)"
    for target in [
      path, path + "/audio", path + "/waveform?width=9", path + "/waveform.png?width=99", path + "/labels",
      path + "/spectrogram?start=9000", path + "/spectrogram.png?start=9000",
      path + "/peaks.json?width=9", "/v1/jobs/\(job)/events",
    ] {
      let query = target + (target.contains("?") ? "&" : "?") + "token=\(token)"
      let answer = try await keyed.respond(.get, query, key: nil)
      #expect(answer.status == .ok, "\(target)")
      #expect(answer.fields["Access-Control-Allow-Origin"] == "*")
      #expect(answer.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
      #expect(answer.fields["Referrer-Policy"] == "no-referrer")
      #expect(answer.fields["Cache-Control"]?.contains("public") == false)
      #expect(try await keyed.status(.get, target, key: token) == 200, "\(target)")
    }
    for target in [
      "/v1/recordings", "/v1/jobs", "/v1/jobs/\(job)", path + "/noise-regions", "/v1/recordings/\(other)",
      "/v1/recordings/\(other)/audio", path + "/waveform.png?overlay=\(id)", path + "/waveform.png?profile=\(id)",
    ] {
      #expect(try await keyed.status(.get, target, key: token) == 403, "\(target)")
    }
    #expect(try await keyed.status(.patch, path, key: token, body: "{\"name\":\"b\"}") == 403)
    #expect(try await keyed.status(.delete, path, key: token) == 403)
    #expect(try await keyed.status(.post, "/v1/tokens", key: token, body: "{\"recording\":\"\(id)\"}") == 403)
    #expect(try await keyed.status(.post, "/v1/recordings", key: token, body: "RIFF") == 403)
    let foreign = try #require(try keyed.bench.catalog.recording(other)?.waveformJob)
    #expect(try await keyed.status(.get, "/v1/jobs/\(foreign)/events", key: token) == 404)
    let writing = try await keyed.token("{\"recording\":\"\(id)\",\"scopes\":[\"write\"]}")
    #expect(try await keyed.status(.patch, path, key: writing, body: "{\"name\":\"b\"}") == 200)
    #expect(try await keyed.status(.get, path, key: writing) == 403)
    #expect(try await keyed.status(.post, path + "/denoise", key: writing) == 403)
  }

  @Test func everyAlteredByteOfATokenIsRefused() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    let token = Array(try await keyed.token("{\"recording\":\"\(id)\"}").utf8)
    let secrets = keyed.bench.context.access.secrets.all
    #expect(AccessToken(token, secrets: secrets) != nil)
    for index in token.indices {
      for change in [UInt8(1), 2, 4, 0x20] {
        var altered = token
        altered[index] ^= change
        #expect(AccessToken(altered, secrets: secrets) == nil, "byte \(index)")
      }
      #expect(AccessToken(Array(token[..<index]), secrets: secrets) == nil)
    }
    for longer in [token + [0x3D], token + [0x2E], [0x20] + token, token + token] {
      #expect(AccessToken(longer, secrets: secrets) == nil)
    }
    #expect(AccessToken([UInt8](repeating: 0x41, count: 100_000), secrets: secrets) == nil)
    var altered = token
    altered[0] ^= 1
    let text = String(decoding: altered, as: UTF8.self)
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)?token=\(text)", key: nil) == 401)
  }

  @Test func aTokenEndsWithItsTimeAndItsKey() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    let token = try await keyed.token("{\"recording\":\"\(id)\",\"scopes\":[\"read\",\"write\"]}")
    let secret = try keyed.bench.context.access.secrets.signing()
    var past = try #require(AccessToken(Array(token.utf8), secrets: [secret]))
    past.exp = 1_600_000_000
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: past.text(signedWith: secret)) == 401)
    var foreign = try #require(AccessToken(Array(token.utf8), secrets: [secret]))
    foreign.tenant = try #require(Tenant("theirs"))
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: foreign.text(signedWith: secret)) == 401)
    // The key may read no longer, and so may the token.
    try keyed.replaceKeys(KeyedBench.line("ours", tenant: "ours", ["write"]))
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: token) == 403)
    try keyed.replaceKeys("")
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: token) == 401)
  }

  @Test func aTokenOutlivesItsKeysSecret() async throws {
    let keyed = try KeyedBench()
    let path = "/v1/recordings/\(try await keyed.recording())"
    let token = try await keyed.token("{\"recording\":\"\(path.suffix(36))\"}")
    try keyed.rotate("ours", to: "another secret of at least 32 characters")
    #expect(try await keyed.status(.get, path) == 401)
    #expect(try await keyed.status(.get, path, key: token) == 200)
    try keyed.replaceKeys(KeyedBench.line("theirs", tenant: "theirs", ["read"]))
    #expect(try await keyed.status(.get, path, key: token) == 401)
  }

  @Test(
    "a token that lasts longer than a week is refused, even with a valid signature",
    arguments: [604_920, 1 << 40, .max] as [Int64])
  func longest(seconds: Int64) async throws {
    let keyed = try KeyedBench()
    let path = "/v1/recordings/\(try await keyed.recording())"
    let secret = try keyed.bench.context.access.secrets.signing()
    let token = try await keyed.token("{\"recording\":\"\(path.suffix(36))\",\"expires_in\":604800}")
    #expect(try await keyed.status(.get, path, key: token) == 200)
    var longer = try #require(AccessToken(Array(token.utf8), secrets: [secret]))
    longer.exp = Timestamp.now.milliseconds / 1000 &+ seconds
    if longer.exp < 0 { longer.exp = .max }
    #expect(try await keyed.status(.get, path, key: longer.text(signedWith: secret)) == 401)
    longer.exp = .min
    #expect(try await keyed.status(.get, path, key: longer.text(signedWith: secret)) == 401)
  }

  @Test("a secret file that was not written completely is replaced")
  func brokenSecret() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/token-secret"
    try "".write(toFile: path, atomically: true, encoding: .utf8)
    let secrets = try TokenSecrets(path: nil, directory: folder.path)
    #expect(secrets.all.isEmpty)
    let secret = try secrets.signing()
    #expect(secrets.all == [secret] && secret.count == 43)
    #expect(try TokenSecrets(path: nil, directory: folder.path).all == [secret])
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }

  @Test(
    "a secret that is there but can't be used ends the start with the file's name, and is never replaced",
    arguments: ["a folder", "a link to itself", "a link to nothing", "too short"])
  func unusableSecret(kind: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/token-secret"
    let files = FileManager.default
    switch kind {
    case "a folder": try files.createDirectory(atPath: path, withIntermediateDirectories: false)
    case "a link to itself": try files.createSymbolicLink(atPath: path, withDestinationPath: path)
    case "a link to nothing": try files.createSymbolicLink(atPath: path, withDestinationPath: path + "-is-gone")
    default: try "short\n".write(toFile: path, atomically: true, encoding: .utf8)
    }
    let before = try files.attributesOfItem(atPath: path)[.type] as? FileAttributeType
    var configuration = Configuration()
    configuration.dataDirectory = folder.path
    let start = { [configuration] in _ = try Access(configuration) { .now }.secrets.signing() }
    #expect(performing: start, throws: { "\($0)".contains(path) })
    #expect(try files.attributesOfItem(atPath: path)[.type] as? FileAttributeType == before)
    if kind == "too short" { #expect(try String(contentsOfFile: path, encoding: .utf8) == "short\n") }
  }

  @Test("of nodes that share a folder, the first makes the secret, and the others use it")
  func sharedSecret() throws {
    let folder = try TemporaryFolder()
    let nodes = try (0..<3).map { _ in try TokenSecrets(path: nil, directory: folder.path) }
    #expect(try !nodes[2].reload())
    let secret = try nodes[0].signing()
    #expect(try nodes[1].signing() == secret)
    #expect(try nodes[2].reload() && nodes[2].all == [secret])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["token-secret"])
  }

  @Test("of those that make the secret at the same moment, one does, also if an empty file is there")
  func simultaneousSecret() async throws {
    for isEmpty in (0..<30).map({ $0 % 2 == 0 }) {
      let folder = try TemporaryFolder()
      if isEmpty { try Data().write(to: URL(filePath: TokenSecrets.ownPath(in: folder.path))) }
      let nodes = try (0..<4).map { _ in try TokenSecrets(path: nil, directory: folder.path) }
      let made = try await withThrowingTaskGroup(of: [UInt8].self) { group in
        for node in nodes { group.addTask { try await blocking { try node.signing() } } }
        return try await group.reduce(into: Set()) { $0.insert($1) }
      }
      #expect(made == Set(try TokenSecrets(path: nil, directory: folder.path).all) && made.count == 1)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["token-secret"])
    }
  }

  @Test("a process that is stopped while it makes the secret keeps no other from signing, or only with a clear error")
  func stoppedWhileMaking() throws {
    let folder = try TemporaryFolder()
    let path = TokenSecrets.ownPath(in: folder.path)
    // What one leaves that was killed while it wrote.
    try Data("half".utf8).write(to: URL(filePath: path + ".0123456789abcdef"))
    let secret = try TokenSecrets(path: nil, directory: folder.path).signing()
    #expect(secret.count == 43)
    try FileManager.default.removeItem(atPath: path)
    // On a disk without hard links, a process locks the file before it writes.
    let stopped = try FileDescriptor(path: path, flags: O_RDWR | O_CREAT)
    let isLocked = try stopped.lock()
    #expect(isLocked)
    let secrets = try TokenSecrets(path: nil, directory: folder.path, patience: .zero)
    let error = try #require(#expect(throws: ServiceError.self) { try secrets.signing() })
    #expect(problem(for: error).status == .serviceUnavailable && "\(error)".contains(path))
    // Once it has written, nobody waits for its lock.
    try stopped.write(Array("one of its secrets\n".utf8).span)
    #expect(try secrets.signing() == Array("one of its secrets".utf8))
  }

  @Test("a secret of another node that can't be used is an error when the files are read again")
  func unusableSecretOfAnotherNode() throws {
    let folder = try TemporaryFolder()
    let secrets = try TokenSecrets(path: nil, directory: folder.path)
    try "short\n".write(toFile: TokenSecrets.ownPath(in: folder.path), atomically: true, encoding: .utf8)
    #expect(throws: KeyFileError.self) { try secrets.reload() }
    #expect(try !secrets.reload(), "it is read every second, and nobody needs a line for each")
    try "long enough for a secret\n".write(
      toFile: TokenSecrets.ownPath(in: folder.path), atomically: true, encoding: .utf8)
    #expect(try secrets.reload() && secrets.all.count == 1)
  }

  @Test func aTokenForAnUploadEndsWithItsKeysScope() async throws {
    let keyed = try KeyedBench()
    let token = try await keyed.token("{\"upload\":true}", key: "writer")
    let made = try await keyed.respond(.post, "/v1/uploads", key: token, fields: ["Upload-Length": "6"])
    let path = try #require(made.fields["Location"])
    #expect(try await keyed.status(.head, path, key: token) == 200)
    try keyed.replaceKeys(KeyedBench.line("writer", tenant: "ours", ["read"]))
    for method in [HTTPMethod.head, .delete] { #expect(try await keyed.status(method, path, key: token) == 403) }
  }

  @Test func theFirstSecretSignsAndAllVerify() async throws {
    let keyed = try KeyedBench(tokenSecrets: "the first secret of all\n")
    let id = try await keyed.recording()
    let old = try await keyed.token("{\"recording\":\"\(id)\"}")
    try keyed.replaceSecrets("the second secret of all\r\nthe first secret of all")
    let new = try await keyed.token("{\"recording\":\"\(id)\"}")
    #expect(AccessToken(Array(new.utf8), secrets: [Array("the second secret of all".utf8)]) != nil)
    for token in [old, new] { #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: token) == 200) }
    try keyed.replaceSecrets("the second secret of all")
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: old) == 401)
    try keyed.replaceSecrets("short")
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: new) == 200)
    #expect(performing: { try KeyedBench(tokenSecrets: "short") }, throws: { "\($0)".contains("line 1") })
  }

  @Test func theServicesOwnSecretIsKeptPrivatelyInTheDataFolder() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    let token = try await keyed.token("{\"recording\":\"\(id)\"}")
    let path = keyed.bench.configuration.dataDirectory + "/token-secret"
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    let again = try Access(keyed.bench.configuration) { .now }
    #expect(AccessToken(Array(token.utf8), secrets: again.secrets.all) != nil)
  }

  @Test func aKeyMintsOnlyWhatItHolds() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    func status(_ body: String, key: String) async throws -> Int {
      try await keyed.status(.post, "/v1/tokens", key: key, body: body)
    }
    #expect(try await status("{\"recording\":\"\(id)\"}", key: "reader") == 201)
    #expect(try await status("{\"recording\":\"\(id)\"}", key: "writer") == 403)
    #expect(try await status("{\"recording\":\"\(id)\",\"scopes\":[\"read\",\"delete\"]}", key: "reader") == 403)
    #expect(try await status("{\"recording\":\"\(id)\"}", key: "root") == 403)
    #expect(try await status("{\"upload\":true}", key: "reader") == 403)
    #expect(try await status("{\"upload\":true}", key: "writer") == 201)
    for body in [
      "{}", "{\"recording\":\"\(id)\",\"upload\":true}", "{\"recording\":\"\(id)\",\"max_bytes\":1}",
      "{\"upload\":true,\"scopes\":[\"write\"]}", "{\"upload\":true,\"max_bytes\":0}", "{\"recording\":7}",
      "{\"recording\":\"\(id)\",\"scopes\":[]}", "{\"recording\":\"\(id)\",\"scopes\":[\"admin\"]}",
      "{\"recording\":\"\(id)\",\"scopes\":[\"read\",\"read\"]}", "{\"recording\":\"\(id)\",\"expires_in\":0}",
      "{\"recording\":\"\(id)\",\"expires_in\":604801}", "{\"record\":\"\(id)\"}",
    ] {
      #expect(try await status(body, key: "ours") == 400, "\(body)")
    }
    #expect(
      try await TestBench().respond(.post, "/v1/tokens", body: "{\"upload\":true}").status == .unprocessableContent)
  }

  @Test func aTokenStartsConversionsOnlyIfMintedForThem() async throws {
    let keyed = try KeyedBench()
    let id = try await keyed.recording()
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    let plain = try await keyed.token("{\"recording\":\"\(id)\"}")
    let path = "/v1/recordings/\(id)/audio?format=mp3"
    #expect(try await keyed.status(.get, path, key: plain) == 403)
    let converting = try await keyed.token("{\"recording\":\"\(id)\",\"convert\":true}")
    #expect(try await keyed.status(.get, path, key: converting) == 200)
    // What is kept by now may be read.
    #expect(try await keyed.status(.get, path, key: plain) == 200)
  }

  @Test func anUploadTokenIsForOneUpload() async throws {
    let keyed = try KeyedBench()
    let token = try await keyed.token("{\"upload\":true,\"max_bytes\":4}")
    #expect(try await keyed.status(.post, "/v1/recordings", key: token, body: "RIFFX") == 413)
    let fields: HTTPFields = ["Idempotency-Key": "k"]
    let made = try await keyed.respond(.post, "/v1/recordings", key: token, fields: fields, body: "RIFF")
    let id = try await KeyedBench.member("id", of: made)
    #expect(made.status == .created)
    #expect(try keyed.bench.catalog.recording(#require(RecordingID(id)))?.tenant.name == "ours")
    // The same request again gets the same answer; another one doesn't.
    let again = try await keyed.respond(.post, "/v1/recordings", key: token, fields: fields, body: "RIFF")
    #expect(again.fields["Idempotency-Replayed"] == "true")
    #expect(try await keyed.status(.post, "/v1/recordings", key: token, body: "RIFF") == 403)
    #expect(try await keyed.status(.post, "/v1/uploads", key: token, fields: ["Upload-Length": "4"]) == 403)
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: token) == 403)
    // Its idempotency keys are its own.
    let other = try await keyed.respond(.post, "/v1/recordings", fields: fields, body: "RIFX")
    #expect(other.status == .created)
  }

  @Test func aResumableUploadBelongsToItsToken() async throws {
    let keyed = try KeyedBench()
    let token = try await keyed.token("{\"upload\":true,\"max_bytes\":8}")
    let other = try await keyed.token("{\"upload\":true}")
    #expect(try await keyed.status(.post, "/v1/uploads", key: token, fields: ["Upload-Length": "9"]) == 413)
    let made = try await keyed.respond(.post, "/v1/uploads", key: token, fields: ["Upload-Length": "8"])
    let upload = try #require(made.fields["Location"])
    #expect(try await keyed.status(.post, "/v1/uploads", key: token, fields: ["Upload-Length": "8"]) == 403)
    #expect(try await keyed.status(.post, "/v1/recordings", key: token, body: "RIFF") == 403)
    for stranger in [other, "theirs"] { #expect(try await keyed.status(.head, upload, key: stranger) == 404) }
    let type: HTTPFields = ["Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"]
    #expect(try await keyed.status(.patch, upload, key: other, fields: type, body: "RIFF") == 404)
    #expect(try await keyed.status(.patch, upload, key: token, fields: type, body: "RIFF") == 204)
    var rest = type
    rest["Upload-Offset"] = "4"
    #expect(try await keyed.status(.patch, upload, key: token, fields: rest, body: "RIFF") == 204)
    let state = try await keyed.respond(.head, upload, key: token)
    let id = try #require(state.fields["Stillwave-Recording"].flatMap { RecordingID($0) })
    #expect(try keyed.bench.catalog.recording(id)?.tenant.name == "ours")
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)", key: token) == 403)
  }
}

extension TokenTests {
  @Test func aRefusedUploadBelongsToItsTokenToo() async throws {
    let keyed = try KeyedBench(script: "[ $command != probe ] || failure unsupported_media false; finish")
    let token = try await keyed.token("{\"upload\":true}")
    let other = try await keyed.token("{\"upload\":true}")
    let made = try await keyed.respond(.post, "/v1/uploads", key: token, fields: ["Upload-Length": "4"])
    let upload = try #require(made.fields["Location"])
    let type: HTTPFields = ["Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"]
    #expect(try await keyed.status(.patch, upload, key: token, fields: type, body: "RIFF") == 415)
    for method in [HTTPMethod.head, .patch, .delete] {
      #expect(try await keyed.status(method, upload, key: other, fields: type) == 404, "\(method)")
      for own in [token, "ours"] { #expect(try await keyed.status(.head, upload, key: own) == 415, "\(method)") }
    }
    #expect(try await keyed.status(.delete, upload, key: token) == 204)
    #expect(try await keyed.status(.head, upload, key: token) == 404)
  }

  @Test("an event stream ends when its key is gone, or the secret of its token", arguments: [false, true])
  func stream(hasToken: Bool) async throws {
    let keyed = try KeyedBench(
      script: "case $command in waveform) gate ;; esac; finish", tokenSecrets: "the first secret of all")
    let id = try await keyed.recording()
    let job = try #require(try keyed.bench.catalog.recording(id)?.waveformJob)
    let key = hasToken ? try await keyed.token("{\"recording\":\"\(id)\"}") : "ours"
    let answer = try await keyed.respond(.get, "/v1/jobs/\(job)/events", key: key)
    guard case .stream(_, let next) = answer.body else {
      Issue.record("no stream")
      return
    }
    #expect(try await next() != nil)
    if hasToken {
      try keyed.replaceSecrets("the second secret of all")
    } else {
      try keyed.replaceKeys(KeyedBench.line("theirs", tenant: "theirs", ["read"]))
    }
    #expect(try await next() == nil)
    await keyed.bench.runner.stop()
  }
}
