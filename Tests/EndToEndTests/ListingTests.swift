import Testing

@testable import Sounds

/// Finding recordings: names, pages, search.
struct ListingTests {
  private let clip = WAVFile(Sound.noisy(rate: 8000, channels: 1, seconds: 3, voice: Sound.tone)).bytes

  @Test func recordingsAreListedNewestFirstInPagesThatMissNothing() throws {
    let server = try TestServer()
    let ids = try (0..<7).map { try server.client.upload(clip, name: "clip \($0).wav")["id"].string }
    var seen: [String?] = []
    var target = "/v1/recordings?limit=3"
    for page in 0..<3 {
      let list = try server.client.get(target).json
      seen += (list["recordings"].array ?? []).map(\.["id"].string)
      guard let cursor = list["next_cursor"].string else {
        #expect(page == 2 && list["next_cursor"] == .null)
        break
      }
      target = "/v1/recordings?limit=3&cursor=\(cursor)"
    }
    #expect(seen == ids.reversed())
    try server.stop()
  }

  @Test func aPageIsStableWhileRecordingsComeAndGo() throws {
    let server = try TestServer()
    let ids = try (0..<4).map { try server.client.upload(clip, name: "clip \($0).wav")["id"].string ?? "" }
    let first = try server.client.get("/v1/recordings?limit=2").json
    let cursor = try #require(first["next_cursor"].string)
    _ = try server.client.upload(clip, name: "later.wav")
    #expect(try server.client.delete("/v1/recordings/\(ids[2])").status == 204)
    let second = try server.client.get("/v1/recordings?limit=2&cursor=\(cursor)").json
    #expect(second["recordings"].array?.map(\.["id"].string) == [ids[1], ids[0]])
  }

  @Test func aRecordingIsFoundByAPartOfItsNewName() throws {
    let server = try TestServer()
    // A recording's tag also changes with its waveform's state.
    let id = try #require(try server.client.uploadReady(clip, name: "one.wav")["id"].string)
    _ = try server.client.upload(clip, name: "two.wav")
    let before = try server.client.get("/v1/recordings/\(id)")
    let renamed = try server.client.send("PATCH", "/v1/recordings/\(id)", [:], .json(#"{"name":"Grüße 100%_x.wav"}"#))
    #expect(renamed.status == 200 && renamed.json["name"] == .string("Grüße 100%_x.wav"))
    #expect(try server.client.recording(id)["name"] == .string("Grüße 100%_x.wav"))
    let after = try server.client.get("/v1/recordings/\(id)", ["If-None-Match": before["etag"] ?? ""])
    #expect(after.status == 200 && after["cache-control"] == "no-cache")
    #expect(try server.client.get("/v1/recordings/\(id)", ["If-None-Match": after["etag"] ?? ""]).status == 304)
    for (text, count) in [("grü", 1), ("100%_", 1), ("%", 1), ("wav", 2), ("one", 0), ("two", 1)] {
      let list = try server.client.get("/v1/recordings?q=\(escaped(text))").json
      #expect(list["recordings"].array?.count == count, "\(text)")
    }
  }

  @Test func aHostileNameBecomesAHarmlessOne() throws {
    let server = try TestServer()
    for (given, kept) in [
      ("../../etc/passwd", "passwd"), ("a\u{7}b\n.wav", "ab.wav"), ("C:\\sounds\\take 1.wav", "take 1.wav"),
      ("..", "recording.wav"), ("", "recording.wav"), (String(repeating: "ä", count: 300), nil),
    ] {
      let recording = try server.client.upload(clip, name: given)
      let name = try #require(recording["name"].string)
      if let kept { #expect(name == kept) }
      #expect(name.utf8.count <= 255)
    }
    #expect(try server.leftovers().allSatisfy { !$0.contains("passwd") })
  }

  @Test func jobsAreListedByRecordingAndState() throws {
    let server = try TestServer()
    let first = try server.client.uploadReady(clip)
    let second = try server.client.uploadReady(clip)
    let id = try #require(first["id"].string)
    let job = try server.client.denoise(id)
    try server.client.succeed(job["id"].string ?? "")
    let jobs = try server.client.get("/v1/jobs?recording=\(id)&state=succeeded").json["jobs"].array ?? []
    #expect(jobs.first?["id"] == job["id"] && jobs.map(\.["kind"].string).contains("waveform"))
    #expect(!jobs.contains { $0["recording"] == second["id"] })
    #expect(try server.client.get("/v1/jobs?state=failed").json["jobs"] == .array([]))
    #expect(try server.client.get("/v1/jobs?limit=2").json["next_cursor"].string != nil)
  }
}
