import Foundation
import PostgresServer
import Testing

@testable import Sounds

/// Nodes that share a catalog in PostgreSQL and a bucket, and no disk.
@Suite(.enabled(if: PostgresServer.TestServer.isInstalled, "PostgreSQL isn't installed: deploy/install postgres"))
struct BucketTests {
  private let cluster: BucketCluster
  private let one, two: TestServer

  init() throws {
    cluster = try BucketCluster()
    (one, two) = (try cluster.node("one"), try cluster.node("two"))
  }

  private static let fields = ["Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"]

  private func newUpload(_ length: Int, at node: TestServer) throws -> String {
    let created = try node.client.send("POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "\(length)"])
    return try #require(created["location"])
  }

  private func send(_ bytes: ArraySlice<UInt8>, to upload: String, at node: TestServer) throws -> Answer {
    let fields = Self.fields.merging(["Upload-Offset": "\(bytes.startIndex)"]) { $1 }
    let answer = try node.client.send("PATCH", upload, fields, .bytes(Array(bytes)))
    try #require(answer.status == 204 && answer["upload-offset"] == "\(bytes.endIndex)", "\(answer.text)")
    return answer
  }

  /// Every object is named by a row, and every row's object is there, as it should be.
  private func expectNothingUnknown() throws {
    let (needed, unneeded) = try cluster.named()
    let objects = try cluster.objects()
    #expect(objects.subtracting(needed).subtracting(unneeded) == [])
    #expect(needed.subtracting(objects) == [])
    let found = try cluster.check()
    #expect(found.status == 0 && found.answer["notes"] == .array([]), "\(found.answer) \(found.errors)")
  }

  @Test func whatOneNodeTakesInIsThereOnTheOthersUntilItIsDeleted() throws {
    let bytes = try LongClip.flac(cluster.folder, seconds: 60)
    let recording = try one.client.upload(bytes, name: "long.flac")
    let id = try #require(recording["id"].string)
    try two.client.succeed(try #require(recording["waveform"]["job"].string))
    let path = "/v1/recordings/\(id)"
    let slices = try [one, two].map { try $0.client.get("\(path)/waveform?width=500").json }
    #expect(slices[0]["complete"] == .bool(true) && slices[0]["data"].integers == slices[1]["data"].integers)
    let range = try two.client.get("\(path)/audio", ["Range": "bytes=70000-70009"])
    #expect(range.status == 206 && range.body == Array(bytes[70_000..<70_010]))
    #expect(try two.client.get("\(path)/audio").body == bytes)
    let parts = try [one, two].map { try $0.client.get("\(path)/audio?start=1&end=1.5") }
    #expect(parts[0].status == 200 && parts[0].body == parts[1].body)

    let denoise = try two.client.denoise(id)
    let job = try one.client.succeed(try #require(denoise["id"].string))
    let cleaned = try #require(job["result"]["recording"].string)
    for node in [one, two] {
      let cleaned = "/v1/recordings/\(cleaned)"
      #expect(try node.client.get("\(cleaned)/waveform?width=9").json["complete"] == .bool(true))
      #expect(try node.client.get("\(cleaned)/audio").status == 200)
    }
    let converted = try two.client.conversion("\(path)/audio?format=mp3")
    #expect(try converted.status == 200 && one.client.get("\(path)/audio?format=mp3").body == converted.body)
    try expectNothingUnknown()

    for id in [id, cleaned] { #expect(try one.client.send("DELETE", "/v1/recordings/\(id)").status == 204) }
    let isGone = try eventually(withinSeconds: 5) {
      try two.client.get("\(path)/audio").status == 404 && two.client.get("\(path)/waveform?width=9").status == 404
    }
    #expect(isGone)
    #expect(try eventually(withinSeconds: 5) { try cluster.objects() == ["media-id"] })
    for node in [one, two] {
      let cache = node.data + "/scratch/cache/objects"
      #expect(try eventually(withinSeconds: 5) { try FileManager.default.contentsOfDirectory(atPath: cache) == [] })
    }
    try one.stop()
    try two.stop()
  }

  @Test("of a long waveform, a node that has nothing of it fetches what a window shows", .secondTier)
  func partsOfAWaveform() throws {
    // 15 MB of waveform.
    let recording = try one.client.upload(try LongClip.flac(cluster.folder, seconds: 1800), name: "long.flac")
    let path = "/v1/recordings/\(try #require(recording["id"].string))"
    try one.client.succeed(try #require(recording["waveform"]["job"].string))
    let late = try cluster.node("three")
    func received() throws -> Int { try #require(try late.client.metric("stillwave_store_received_bytes_total")) }
    let before = try received()
    for query in ["start=600&end=660&width=1000", "start=1700&end=1790&width=300&channels=split&measures=peak,rms"] {
      let slices = try [one, late].map { try $0.client.get("\(path)/waveform?\(query)") }
      #expect(slices[1].status == 200 && slices[0].body == slices[1].body)
    }
    #expect(try received() - before < 3_000_000)
    let slices = try [one, late].map { try $0.client.get("\(path)/waveform?width=1000").body }
    #expect(slices[0] == slices[1])
    let pictures = try [one, late].map { try $0.client.get("\(path)/waveform.png?width=300&start=3&end=1000").body }
    #expect(pictures[0] == pictures[1])
    try late.stop()
    try expectNothingShown(ofDamaged: path, slices[0])
  }

  /// A node that finds a waveform damaged in the bucket shows nothing of that, and has it built again.
  private func expectNothingShown(ofDamaged path: String, _ whole: [UInt8]) throws {
    let key = try #require(try cluster.rows("SELECT waveform_key FROM recordings").first)
    var bytes = try cluster.get(key)
    for place in stride(from: 5000, to: bytes.count, by: 4096) { bytes[place] ^= 1 }
    try cluster.put(bytes, as: key)
    let node = try cluster.node("four")
    let first = try node.client.get("\(path)/waveform?width=1000")
    #expect(first.status == 200 && first.body != whole && first.json["complete"] == .bool(false))
    #expect(try eventually(withinSeconds: 60) { try node.client.get("\(path)/waveform?width=1000").body == whole })
    try node.stop()
  }

  @Test func anUploadGoesOnAtAnyNodeEvenIfADiskIsLost() throws {
    let bytes = LongClip.wave(seconds: 60)
    let long = 5 << 20 + 99
    let upload = try newUpload(bytes.count, at: one)
    _ = try send(bytes[..<long], to: upload, at: one)
    try expectNothingUnknown()
    try one.crash()
    try FileManager.default.removeItem(atPath: one.data)
    _ = try send(bytes[long..<long + 1], to: upload, at: two)
    try one.restart()
    let last = try send(bytes[(long + 1)...], to: upload, at: one)
    let id = try #require(last["stillwave-recording"])
    for node in [one, two] {
      #expect(try node.client.get("/v1/recordings/\(id)/audio").body == bytes)
      let head = try node.client.send("HEAD", upload, ["Tus-Resumable": "1.0.0"])
      #expect(head["stillwave-recording"] == id)
    }
    let isSwept = try eventually(withinSeconds: 5) { try !cluster.objects().contains { $0.hasPrefix("uploads/") } }
    #expect(isSwept)
    try two.client.succeed(try #require(try two.client.recording(id)["waveform"]["job"].string))
    try expectNothingUnknown()
    let abandoned = try newUpload(99, at: two)
    _ = try send(bytes[..<9], to: abandoned, at: two)
    #expect(try one.client.send("DELETE", abandoned, ["Tus-Resumable": "1.0.0"]).status == 204)
    #expect(try eventually(withinSeconds: 5) { try !cluster.objects().contains { $0.hasPrefix("uploads/") } })
    try expectUpkeep(of: id)
  }

  /// A start removes what rows name as unneeded and no row as needed, and nothing else.
  private func expectUpkeep(of id: String) throws {
    let needed = try cluster.named().needed
    let late = (0..<2).map { ["recordings/\(id)/working-late.wav", "uploads/\(id)/\($0)-late"][$0] }
    let strange = ["recordings/\(id)/letter.txt", "uploads/letter.txt", "letter.txt"]
    for key in late + strange { try cluster.put([1], as: key) }
    for key in late + needed { _ = try cluster.rows("INSERT INTO garbage VALUES ('\(key)', 0) ON CONFLICT DO NOTHING") }
    _ = try cluster.rows("UPDATE garbage SET due = 0")
    try two.stop()
    try two.restart()
    #expect(try eventually(withinSeconds: 20) { try cluster.rows("SELECT object FROM garbage") == ["media-id"] })
    let objects = try cluster.objects()
    #expect(objects.isDisjoint(with: late) && objects.isSuperset(of: needed.union(strange)))
    #expect(try eventually(withinSeconds: 5) { try cluster.rows("SELECT id FROM removals") == [] })
  }

  @Test func aNodeWhoseStoreDoesNotAnswerIsNotReadyButAnswersOtherRequests() throws {
    #expect(try one.client.get("/readyz").status == 200)
    let id = try #require(try two.client.upload(BadUploadTests.tone.bytes, name: "a.wav")["id"].string)
    cluster.store.command.signal(SIGSTOP)
    // More than there are threads, here or anywhere.
    let waiting = try (0..<300).map { _ in
      let wire = try Wire(port: one.client.port)
      #expect(wire.send("GET /v1/recordings/\(id)/audio HTTP/1.1\r\nHost: x\r\n\r\n"))
      return wire
    }
    for _ in 0..<3 { #expect(try one.client.get("/v1/recordings").json["recordings"].array?.count == 1) }
    withExtendedLifetime(waiting) {}
    let isNoticed = try eventually(withinSeconds: 20) {
      try one.client.get("/readyz").json["code"].string == "media_unavailable"
    }
    let own = try one.client.get("/readyz?own=1")
    #expect(own.status == 200 && own.json["status"] == .string("impaired"), "\(own.text)")
    cluster.store.command.signal(SIGCONT)
    #expect(isNoticed)
    #expect(try eventually(withinSeconds: 20) { try one.client.get("/readyz").status == 200 })
  }

  @Test(.secondTier) func whileTheStoreIsSilentManyRenamesHoldUpNeitherEachOtherNorReadsNorLeases() throws {
    try two.stop()
    let ids = try (0..<40).map { number in
      try #require(try one.client.upload(BadUploadTests.tone.bytes, name: "\(number).wav")["id"].string)
    }
    let long = try one.client.uploadReady(try LongClip.flac(cluster.folder, seconds: 600), name: "long.flac")
    let source = try #require(long["id"].string)
    let job = try #require(try one.client.denoise(source)["id"].string)
    try #require(try eventually { try one.client.get("/v1/jobs/\(job)").json["state"] == .string("running") })
    try one.holdingWorkers {
      cluster.store.command.signal(SIGSTOP)
      defer { cluster.store.command.signal(SIGCONT) }
      // More than there are threads, and several of each recording. The store's patience is 30 seconds, as is a lease.
      let renames = try (0..<200).map { number in
        let (wire, name) = (try Wire(port: one.client.port, timeoutSeconds: 15), #"{"name":"renamed \#(number)"}"#)
        let head = "PATCH /v1/recordings/\(ids[number % ids.count]) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        #expect(wire.send(head + "Content-Type: application/json\r\nContent-Length: \(name.utf8.count)\r\n\r\n" + name))
        return wire
      }
      for _ in 0..<3 { #expect(try one.client.get("/v1/recordings").status == 200) }
      for wire in renames { #expect(try wire.answer(to: "PATCH").status == 200) }
      let lease = "SELECT lease_until FROM jobs WHERE id = '\(job)' AND state = 'running'"
      let before = try #require(Int(try cluster.rows(lease).first ?? ""))
      #expect(try eventually(withinSeconds: 15) { try Int(cluster.rows(lease).first ?? "") ?? 0 > before })
    }
    try one.client.succeed(job)
    // As if a minute had passed: the next start describes what couldn't be described.
    _ = try cluster.rows("UPDATE garbage SET due = 0 WHERE object LIKE '%/recording.json'")
    try one.stop()
    try one.restart()
    #expect(try eventually(withinSeconds: 60) { try cluster.check().answer["notes"] == .array([]) })
    try expectNothingUnknown()
  }

  @Test func aNodeThatIsStoppedEndsAlthoughItsStoreIsSilentAndItsJobIsDoneElsewhere() throws {
    let node = try cluster.node("three", "--grace-period", "1")
    try one.stop()
    try two.stop()
    let recording = try node.client.uploadReady(try LongClip.flac(cluster.folder, seconds: 20), name: "long.flac")
    let id = try #require(recording["id"].string)
    let rows = "SELECT object FROM garbage WHERE object NOT LIKE '%.json'"
    let before = Set(try cluster.rows(rows))
    cluster.store.command.signal(SIGSTOP)
    let job = try #require(try node.client.denoise(id)["id"].string)
    // The cleaned sound is being put.
    #expect(try eventually { try !before.isSuperset(of: cluster.rows(rows)) })
    node.command.signal(SIGTERM)
    // One request to the store may take longer, and a result needs several.
    #expect(try node.command.finish(withinSeconds: 15).status == 0)
    cluster.store.command.signal(SIGCONT)
    let row = "SELECT state || ' ' || attempts - interruptions FROM jobs WHERE id = '\(job)'"
    let left = try cluster.rows(row)
    #expect(left == ["queued 0"])
    let next = try cluster.node("four")
    try next.client.succeed(job)
    try next.stop()
    try expectNothingUnknown()
  }

  @Test func aJobWhoseSourceTheStoreDoesNotGiveWaitsAndHoldsUpNoOther() throws {
    try one.stop()
    let api = try cluster.node("api", "--role", "api")
    let jobs = try (0..<2).map { number in
      let recording = try api.client.upload(BadUploadTests.tone.bytes, name: "\(number).wav")
      let id = try #require(recording["id"].string)
      if number == 0 { try cluster.store.refuseReads(of: id) }
      let answer = try api.client.post("/v1/recordings/\(id)/trim", json: #"{"start":0.1,"end":0.2}"#)
      try #require(answer.status == 202, "\(answer.text)")
      return try #require(answer.json["id"].string)
    }
    try api.client.succeed(jobs[1])
    let isPostponed = try eventually(withinSeconds: 60) {
      try cluster.rows("SELECT state FROM jobs WHERE id = '\(jobs[0])' AND postponements = 1") == ["queued"]
    }
    let waiting = try api.client.get("/v1/jobs/\(jobs[0])").json
    #expect(isPostponed && waiting["state"] == .string("queued") && waiting["error"] == .null, "\(waiting)")
    #expect(try two.client.get("/readyz").status == 200)
    try cluster.store.refuseReads(of: "")
    // As if some seconds had passed. The new node looks at once.
    _ = try cluster.rows("UPDATE jobs SET not_before = 0 WHERE id = '\(jobs[0])'")
    let three = try cluster.node("three")
    let document = try api.client.succeed(jobs[0])
    #expect(document["attempts"].int == 2)
    withExtendedLifetime(three) {}
  }

  @Test func whatTheRowKnowsOfAFileIsAnsweredWithoutTheStore() throws {
    let bytes = BadUploadTests.tone.bytes
    let id = try #require(try one.client.upload(bytes, name: "a.wav")["id"].string)
    let path = "/v1/recordings/\(id)/audio"
    let converted = try one.client.conversion("\(path)?format=flac")
    // The other node has nothing of the recording, and can't fetch it.
    cluster.store.command.signal(SIGSTOP)
    defer { cluster.store.command.signal(SIGCONT) }
    let head = try two.client.send("HEAD", path)
    #expect(head.status == 200 && head["content-length"] == "\(bytes.count)" && head["accept-ranges"] == "bytes")
    let tag = try #require(head["etag"])
    #expect(try two.client.get(path, ["If-None-Match": tag]).status == 304)
    #expect(try two.client.get(path, ["If-Match": "\"other\""]).status == 412)
    let other = try two.client.send("HEAD", "\(path)?format=flac")
    #expect(other.status == 200 && other["content-length"] == "\(converted.body.count)")
    #expect(other["etag"] == converted["etag"] && other["content-type"] == converted["content-type"])
    #expect(try two.client.get("\(path)?format=flac", ["If-None-Match": try #require(other["etag"])]).status == 304)
  }

  @Test func theWaveformThatANodeBuildsGrowsThereAndOthersSayHowFarItIs() throws {
    try one.stop()
    let api = try cluster.node("api", "--role", "api")
    // The store has all of it in memory.
    let bytes = try LongClip.flac(cluster.folder, seconds: max(60, LongClip.seconds / 5))
    let recording = try api.client.upload(bytes, name: "long.flac")
    let (id, job) = (try #require(recording["id"].string), try #require(recording["waveform"]["job"].string))
    let path = "/v1/recordings/\(id)/waveform?width=9"
    let grows = try eventually { try two.client.get(path).json["available_frames"].int ?? 0 > 0 }
    let seen = try two.holdingWorkers { try (two.client.get(path).json, api.client.get(path).json) }
    #expect(grows)
    if seen.0["complete"] == .bool(false) {
      #expect(try #require(seen.0["available_frames"].int) > 0)
      #expect(seen.1["complete"] == .bool(false) && seen.1["available_frames"].int == 0, "\(seen.1)")
    }
    try api.client.succeed(job)
    #expect(try api.client.get(path).json["data"].integers == two.client.get(path).json["data"].integers)
    // Cold, it fetches no more than is asked for.
    let cold = try cluster.node("cold", "--role", "api")
    let last = try cold.client.get("/v1/recordings/\(id)/audio", ["Range": "bytes=-9"])
    #expect(bytes.count > 5 << 20 && last.status == 206 && last.body == bytes.suffix(9))
    #expect(try cachedBytes(of: cold) < 1 << 20)
    #expect(try cold.client.get("/v1/recordings/\(id)/audio").body == bytes)
    #expect(try cachedBytes(of: cold) >= bytes.count)
  }

  /// Bytes of the disk that a node's cache has of recordings.
  private func cachedBytes(of node: TestServer) throws -> Int {
    let folder = node.data + "/scratch/cache/objects"
    return try FileManager.default.contentsOfDirectory(atPath: folder).reduce(0) { sum, name in
      var info = stat()
      return unsafe stat("\(folder)/\(name)", &info) == 0 ? sum + info.st_blocks * 512 : sum
    }
  }

  @Test func aNodeThatCannotUseTheBucketDoesNotStart() throws {
    let server = try #require(PostgresServer.TestServer.shared)
    _ = try one.client.upload(BadUploadTests.tone.bytes, name: "a.wav")
    try write(
      Array("[default]\naws_access_key_id = \(BucketServer.accessKey)\naws_secret_access_key = no\n".utf8),
      to: cluster.folder.file("wrong"))
    for (more, reason) in [
      (["--media", "s3://sounds/other"], "isn't the bucket whose recordings the catalog describes"),
      (["--catalog", server.url(database: try server.newDatabase())], "isn't the bucket whose recordings"),
      (["--media", "s3://silence"], "there is no such bucket"),
      (["--s3-credentials", cluster.folder.file("wrong")], "the key is refused"),
      (["--s3-credentials", cluster.folder.file("none")], "has no key"),
      (["--scratch", one.data + "/scratch"], "Another service uses"),
    ] {
      let usual = ["serve", "--node", "x", "--listen", "127.0.0.1:0", "--data", cluster.folder.file("x")]
      let finished = try Command(Program.path(), usual + cluster.arguments + more).finish(withinSeconds: 60)
      #expect(finished.status != 0 && finished.errors.contains(reason), "\(more): \(finished.errors)")
    }
  }
}
