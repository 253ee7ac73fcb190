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
    let isGone = try eventually {
      try two.client.get("\(path)/audio").status == 404 && two.client.get("\(path)/waveform?width=9").status == 404
    }
    #expect(isGone)
    #expect(try eventually { try cluster.objects() == ["media-id"] })
    for node in [one, two] {
      let cache = node.data + "/scratch/cache/objects"
      #expect(try eventually { try FileManager.default.contentsOfDirectory(atPath: cache) == [] })
    }
    try one.stop()
    try two.stop()
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
    let isSwept = try eventually { try !cluster.objects().contains { $0.hasPrefix("uploads/") } }
    #expect(isSwept)
    try two.client.succeed(try #require(try two.client.recording(id)["waveform"]["job"].string))
    try expectNothingUnknown()
    let abandoned = try newUpload(99, at: two)
    _ = try send(bytes[..<9], to: abandoned, at: two)
    #expect(try one.client.send("DELETE", abandoned, ["Tus-Resumable": "1.0.0"]).status == 204)
    #expect(try eventually { try !cluster.objects().contains { $0.hasPrefix("uploads/") } })
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
    #expect(try eventually { try cluster.rows("SELECT object FROM garbage") == ["media-id"] })
    let objects = try cluster.objects()
    #expect(objects.isDisjoint(with: late) && objects.isSuperset(of: needed.union(strange)))
    #expect(try eventually { try cluster.rows("SELECT id FROM removals") == [] })
  }

  @Test func aNodeWhoseStoreDoesNotAnswerIsNotReadyButAnswersOtherRequests() throws {
    #expect(try one.client.get("/readyz").status == 200)
    let id = try #require(try two.client.upload(Clip.tone.bytes, name: "a.wav")["id"].string)
    cluster.store.command.signal(SIGSTOP)
    // More than there are threads, here or anywhere.
    let waiting = try (0..<300).map { _ in
      let wire = try Wire(port: one.client.port)
      #expect(wire.send("GET /v1/recordings/\(id)/audio HTTP/1.1\r\nHost: x\r\n\r\n"))
      return wire
    }
    for _ in 0..<3 { #expect(try one.client.get("/v1/recordings").json["recordings"].array?.count == 1) }
    withExtendedLifetime(waiting) {}
    let isNoticed = try eventually {
      try one.client.get("/readyz").json["code"].string == "media_unavailable"
    }
    let own = try one.client.get("/readyz?own=1")
    #expect(own.status == 200 && own.json["status"] == .string("impaired"), "\(own.text)")
    cluster.store.command.signal(SIGCONT)
    #expect(isNoticed)
    #expect(try eventually { try one.client.get("/readyz").status == 200 })
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
    #expect(try node.command.finish().status == 0)
    cluster.store.command.signal(SIGCONT)
    let row = "SELECT state || ' ' || attempts - interruptions FROM jobs WHERE id = '\(job)'"
    let left = try cluster.rows(row)
    #expect(left == ["queued 0"])
    let next = try cluster.node("four")
    try next.client.succeed(job)
    try next.stop()
    try expectNothingUnknown()
  }

  @Test func whatTheRowKnowsOfAFileIsAnsweredWithoutTheStore() throws {
    let bytes = Clip.tone.bytes
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
}
