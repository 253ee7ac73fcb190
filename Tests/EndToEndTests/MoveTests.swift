import Foundation
import PostgresServer
import Testing

@testable import Sounds

/// `stillwave move`: the commands of docs/cluster.md, with everything that a service has.
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct MoveTests {
  private let cluster: BucketCluster
  private let keys, secret: String

  init() throws {
    cluster = try BucketCluster()
    keys = cluster.folder.file("keys.jsonl")
    let added = try Command.stillwave(
      "keys", "add", "app", "--tenant", "acme", "--scopes", "read,write", "--keys", keys)
    try #require(added.status == 0, "\(added.errors)")
    secret = added.text.trimmingCharacters(in: .newlines)
  }

  private var bearer: [String: String] { ["Authorization": "Bearer \(secret)"] }
  private var data: String { cluster.folder.file("data") }
  private var back: String { cluster.folder.file("back") }
  private var tus: [String: String] {
    bearer.merging(["Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"]) { $1 }
  }

  /// The words of the moves in the documentation, with the places of this test; `media` in place of the bucket.
  private func documented(media: [String]? = nil) throws -> (away: [String], back: [String]) {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let path = root.deletingLastPathComponent().appendingPathComponent("docs/cluster.md").path
    let text = String(decoding: try contents(path), as: UTF8.self)
    let section = try #require(text.components(separatedBy: "\n## From one machine to three\n").last)
    let lines = section.components(separatedBy: "\n## ")[0].split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    func words(_ line: String, folder: String) -> [String] {
      let database =
        "'postgres://stillwave@db/stillwave?sslmode=verify-full&sslrootcert=/etc/ssl/certs/stillwave-database.pem'"
      let places = [
        "/var/lib/stillwave": folder, database: cluster.url,
        "s3://recordings/stillwave": BucketCluster.media, "https://store:7480": cluster.store.endpoint,
        "/etc/stillwave/s3-key": cluster.folder.file("key"),
      ]
      let words = line.split(separator: " ").dropFirst().map { places[String($0)] ?? String($0) }
      guard let media, let start = words.firstIndex(of: "--media") else { return words }
      let end = words[start...].firstIndex {
        !["--media", "--s3-endpoint", "--s3-credentials"].contains($0) && $0.hasPrefix("--")
      }
      return words[..<start] + media + words[(end ?? words.endIndex)...]
    }
    let moves = lines.filter { $0.hasPrefix("stillwave move ") }
    try #require(moves.count == 2)
    return (words(moves[0], folder: data), words(moves[1], folder: back))
  }

  private func move(_ words: [String]) throws -> Command.Finished {
    try Command(try Program.path(), words).finish()
  }

  private func node(_ name: String) throws -> TestServer {
    try TestServer(
      with: cluster.arguments + ["--node", name, "--keys", keys, "--token-secret-file", data + "/token-secret"],
      dataDirectory: cluster.folder.file(name))
  }

  /// What a client sees at some addresses: the status and the content.
  private func view(_ client: HTTPClient, _ paths: [String]) throws -> [String: String] {
    var seen: [String: String] = [:]
    for path in paths {
      let answer = try client.get(path, path.contains("token=") ? [:] : bearer)
      seen[path] = "\(answer.status) \(answer["etag"] ?? "") \(answer.body.count) \(answer.body.hashValue)"
      #expect(answer.status == 200, "\(path): \(answer.text)")
    }
    return seen
  }

  /// What a service has: what to look at, and an unfinished upload with its first bytes.
  private struct Content {
    var paths: [String]
    let upload: String
    let bytes: [UInt8]
    let offset: Int
  }

  private func fill(_ client: HTTPClient) throws -> Content {
    func post(_ path: String, _ fields: [String: String], _ body: HTTPClient.Body) throws -> JSON {
      let answer = try client.send("POST", path, bearer.merging(fields) { $1 }, body)
      try #require((200..<300).contains(answer.status), "\(path): \(answer.text)")
      return answer.json
    }
    func follow(_ job: String) throws {
      let isEnded = try eventually {
        try client.get("/v1/jobs/\(job)", bearer).json["state"].string == "succeeded"
      }
      try #require(isEnded)
    }
    var paths = ["/v1/recordings?limit=1000", "/v1/jobs?limit=1000", "/v1/noise-profiles", "/v1/usage"]
    let long = LongClip.wave(seconds: 30)
    var ids: [String] = []
    for (number, bytes) in ([long] + (1...5).map { WAVFile.noise(seconds: 1, seed: $0) }).enumerated() {
      let made = try post("/v1/recordings?name=clip-\(number).wav", ["Content-Type": "audio/x-any"], .bytes(bytes))
      let id = try #require(made["id"].string)
      try follow(try #require(made["waveform"]["job"].string))
      ids.append(id)
      paths += ["", "/audio", "/waveform?width=300", "/labels"].map { "/v1/recordings/\(id)\($0)" }
    }
    let vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\nGrüße\n"
    let track = try post(
      "/v1/recordings/\(ids[0])/labels?kind=transcript", ["Content-Type": "text/vtt"], .bytes(Array(vtt.utf8)))
    paths.append("/v1/recordings/\(ids[0])/labels/\(try #require(track["id"].string))")
    let profile = try post(
      "/v1/noise-profiles", [:], .json(#"{"recording":"\#(ids[0])","name":"hiss","noise":{"start":0.1,"end":0.9}}"#))
    paths.append("/v1/noise-profiles/\(try #require(profile["id"].string))")
    let job = try post("/v1/recordings/\(ids[1])/denoise", [:], .json("{}"))
    try follow(try #require(job["id"].string))
    let converted = "/v1/recordings/\(ids[1])/audio?format=flac"
    try #require(try eventually { try client.get(converted, bearer).status == 200 })
    paths.append(converted)
    let token = try post("/v1/tokens", [:], .json(#"{"recording":"\#(ids[2])"}"#))["token"].string
    paths.append("/v1/recordings/\(ids[2])/audio?token=\(try #require(token))")

    let (bytes, offset) = (WAVFile.noise(seconds: 2, seed: 9), 40_000)
    let fields = bearer.merging(["Tus-Resumable": "1.0.0", "Upload-Length": "\(bytes.count)"]) { $1 }
    let upload = try #require(try client.send("POST", "/v1/uploads", fields)["location"])
    try send(bytes[..<offset], to: upload, client)
    return Content(paths: paths, upload: upload, bytes: bytes, offset: offset)
  }

  @discardableResult
  private func send(_ bytes: ArraySlice<UInt8>, to upload: String, _ client: HTTPClient) throws -> Answer {
    let fields = tus.merging(["Upload-Offset": "\(bytes.startIndex)"]) { $1 }
    let answer = try client.send("PATCH", upload, fields, .bytes(Array(bytes)))
    try #require(answer.status == 204 && answer["upload-offset"] == "\(bytes.endIndex)", "\(answer.text)")
    return answer
  }

  private func offset(of upload: String, _ client: HTTPClient) throws -> String? {
    try client.send("HEAD", upload, bearer.merging(["Tus-Resumable": "1.0.0"]) { $1 })["upload-offset"]
  }

  /// Runs a command, and kills it as soon as `isFar` or when it has ended; returns whether it was killed.
  private func kill(_ words: [String], when isFar: () throws -> Bool) throws -> Bool {
    let command = try Command(try Program.path(), words)
    _ = try eventually { try !command.isRunning || isFar() }
    command.signal(SIGKILL)
    return try command.finish().status == 128 + SIGKILL
  }

  @Test("a service moves to a bucket and back with everything that it has, although the moves are killed", .secondTier)
  func roundTrip() throws {
    let server = try TestServer("--keys", keys, dataDirectory: data)
    let content = try fill(server.client)
    let before = try view(server.client, content.paths)
    let commands = try documented()
    #expect(try move(commands.away).errors.contains("Another service uses \(data)"))
    try server.stop()

    // A move that is killed is far from its end the first time only: a later one may end before it is killed.
    for count in [2, 7, 15, 24] {
      let isKilled = try kill(commands.away) { try cluster.objects().count >= count }
      guard count == 2 else { continue }
      #expect(isKilled)
      let early = #expect(throws: ToolFailure.self, "no node starts before the move has ended") { try node("early") }
      #expect(
        early?.description.contains("A move into the catalog hasn't ended") == true, "\(early?.description ?? "")")
    }
    let moved = try move(commands.away)
    #expect(moved.status == 0, "\(moved.text) \(moved.errors)")
    let again = try move(commands.away + ["--json"])
    #expect(again.status == 0, "\(again.errors)")
    #expect(try JSON(again.output)["recordings"].int == 7)

    let nodes = try ["n1", "n2", "n3"].map(node)
    for node in nodes {
      #expect(try view(node.client, content.paths) == before)
      #expect(try offset(of: content.upload, node.client) == "\(content.offset)")
    }
    #expect(try move(commands.back).errors.contains("use the catalog. Stop all nodes"))
    try send(content.bytes[content.offset..<content.offset + 20_000], to: content.upload, nodes[1].client)
    for node in nodes { try node.stop() }

    for count in [1, 4, 6] {
      let recordings = back + "/recordings"
      func number() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: recordings).count) ?? 0 }
      let isKilled = try kill(commands.back) { number() >= count }
      guard count == 1 else { continue }
      #expect(isKilled)
      let refused = try Command.stillwave("serve", "--data", back, "--listen", "127.0.0.1:0")
      #expect(refused.status != 0 && refused.errors.contains("is unfinished: a move from postgres://"))
      #expect(try Command.stillwave("check", "--data", back).errors.contains("is unfinished"))
    }
    let returned = try move(commands.back)
    #expect(returned.status == 0, "\(returned.text) \(returned.errors)")
    try FileManager.default.copyItem(atPath: data + "/token-secret", toPath: back + "/token-secret")
    let check = try Command.stillwave("check", "--data", back)
    #expect(check.status == 0, "\(check.text)")
    let last = try TestServer("--keys", keys, dataDirectory: back)
    #expect(try view(last.client, content.paths) == before)
    #expect(try offset(of: content.upload, last.client) == "\(content.offset + 20_000)")
    let finished = try send(content.bytes[(content.offset + 20_000)...], to: content.upload, last.client)
    let id = try #require(finished["stillwave-recording"])
    #expect(try last.client.get("/v1/recordings/\(id)/audio", bearer).body == content.bytes)
    try last.stop()
    // The first place is as it was.
    let first = try TestServer("--keys", keys, dataDirectory: data)
    #expect(try view(first.client, content.paths) == before)
    try first.stop()
  }

  @Test("a move whose disk is full goes on once there is room")
  func fullDisk() throws {
    // Only root may mount.
    guard let disk = Disk("size=1m") else { return }
    let server = try TestServer(dataDirectory: data)
    for seed in 1...9 { _ = try server.client.uploadReady(WAVFile.noise(seconds: 2, seed: seed)) }
    let list = try server.client.get("/v1/recordings").text
    try server.stop()
    let media = ["--media", "file://" + cluster.folder.file("media")]
    let commands = try documented(media: media)
    #expect(try move(commands.away).status == 0)
    let back = commands.back.dropLast() + [disk.path + "/data"]
    let full = try move(Array(back))
    #expect(full.status == 1 && full.errors.contains("The disk is full. What was copied stays"), "\(full.errors)")
    #expect(try Command("/bin/mount", ["-o", "remount,size=64m", disk.path]).finish().status == 0)
    let moved = try move(Array(back))
    #expect(moved.status == 0 && moved.text.contains("from an earlier run"), "\(moved.text) \(moved.errors)")
    let last = try TestServer(dataDirectory: disk.path + "/data")
    #expect(try last.client.get("/v1/recordings").text == list)
    try last.stop()
  }

  @Test("a move says what is wrong with its words and its places")
  func refusals() throws {
    let bucket = ["--media", BucketCluster.media, "--s3-endpoint", cluster.store.endpoint]
    let key = ["--s3-credentials", cluster.folder.file("key")]
    let wrong = cluster.folder.file("wrong")
    try write(
      Array("[default]\naws_access_key_id = \(BucketServer.accessKey)\naws_secret_access_key = no\n".utf8), to: wrong)
    let server = try TestServer(dataDirectory: data)
    _ = try server.client.uploadReady(WAVFile.noise(seconds: 1, seed: 1))
    try server.stop()
    let toCluster = ["--from", data, "--to", cluster.url]
    let cases: [([String], String)] = [
      (["--from", data], "Name both places"),
      (["--from", data, "--to", back], "Both places are folders"),
      (["--from", cluster.url, "--to", cluster.url] + bucket + key, "Both places are catalogs"),
      (["--from", data, "--to", "postgres://a:b@c/d"] + bucket + key, "A URL with a password isn't accepted"),
      (toCluster, "--catalog needs --media"),
      (toCluster + ["--media", "file://" + data], "is the data folder of one machine"),
      (toCluster + ["--media", "file://" + data + "/media"], "can't be inside each other"),
      (
        ["--from", data + "/", "--to", cluster.url, "--media", "file://" + data + "/../data/media"],
        "can't be inside each other"
      ),
      (["--from", cluster.folder.file("none"), "--to", cluster.url] + bucket + key, "There is no data folder"),
      (["--from", cluster.folder.path, "--to", cluster.url] + bucket + key, "catalog.sqlite"),
      (toCluster + bucket + ["--s3-credentials", wrong], "the key is refused (SignatureDoesNotMatch)"),
      (["--from", cluster.url, "--to", data] + bucket + key, "isn't the bucket whose recordings"),
    ]
    for (words, expected) in cases {
      let finished = try move(["move"] + words)
      #expect(finished.status != 0 && finished.errors.contains(expected), "\(words): \(finished.errors)")
    }
    #expect(try move(["move"] + toCluster + bucket + key).status == 0)
    let full = try move(["move", "--from", cluster.url, "--to", data] + bucket + key)
    #expect(full.status == 1 && full.errors.contains("isn't empty"), "\(full.errors)")
    _ = try cluster.rows("INSERT INTO schema_migrations (number, name, oldest) VALUES (99, 'later', 1)")
    let later = try move(["move", "--from", cluster.url, "--to", back] + bucket + key)
    #expect(later.status == 1 && later.errors.contains("newer version"), "\(later.errors)")
  }
}
