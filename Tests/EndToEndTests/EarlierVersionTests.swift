import Foundation
import Testing

/// Data folders that earlier versions left behind when they were killed: see Fixtures/README.md.
struct EarlierVersionTests {
  private func unpacked(_ name: String = "data-before-leases", into folder: TemporaryFolder) throws -> String {
    let archive = Fixture.path("\(name).tar.gz")
    let finished = try Command("/usr/bin/env", ["tar", "-xzf", archive, "-C", folder.path]).finish()
    try #require(finished.status == 0, "\(finished.errors)")
    return folder.file("data")
  }

  @Test("a data folder of the version before leases is opened, its job is finished, and nothing is lost")
  func opened() throws {
    let folder = try TemporaryFolder()
    let server = try TestServer(dataDirectory: try unpacked(into: folder))
    let client = server.client
    let recordings = try #require(try client.get("/v1/recordings").json["recordings"].array)
    #expect(recordings.count == 4)
    func id(_ name: String) throws -> String {
      try #require(recordings.first { $0["name"].string == name }?["id"].string)
    }
    // The job that was running is finished by a second attempt.
    let jobs = try #require(try client.get("/v1/jobs").json["jobs"].array)
    #expect(jobs.count == 5)
    let running = try #require(jobs.first { $0["kind"].string == "denoise" }?["id"].string)
    #expect(try client.succeed(running)["attempts"] == .number(2))
    // What was there is still there, byte by byte.
    for name in ["short.wav", "long.wav", "short (denoised).wav", "long (denoised).wav"] {
      let recording = try client.recording(id(name))
      #expect(recording["waveform"]["state"] == .string("ready") && recording["warnings"].array?.isEmpty == true)
      #expect(try client.get("/v1/recordings/\(id(name))/waveform").json["complete"] == .bool(true))
      let audio = folder.file("audio")
      try write(try client.get("/v1/recordings/\(id(name))/audio").body, to: audio)
      let sum = try Command("/usr/bin/sha256sum", [audio]).finish()
      #expect(String(decoding: sum.output.prefix(64), as: UTF8.self) == recording["sha256"].string)
    }
    let short = try client.get("/v1/recordings/\(id("short.wav"))/audio").body
    #expect(try client.conversion("/v1/recordings/\(id("short.wav"))/audio?format=flac").status == 200)
    #expect(try client.get("/v1/jobs").json["jobs"].array?.count == 5, "the conversion was made again")
    try finishUpload(of: short, server)

    // Every object of the new result has its attempt's name, and the half-written files of the first are gone.
    let output = try FileManager.default.contentsOfDirectory(
      atPath: server.data + "/recordings/" + id("long (denoised).wav"))
    let results = output.filter { $0 != "recording.json" }.sorted()
    #expect(results.count == 2 && results.allSatisfy { $0.contains("-\(running)-2-") }, "\(results)")
    let isCleared = try eventually { try !server.leftovers().contains { $0.hasPrefix("jobs/") } }
    #expect(isCleared)
    try server.stop()
    let check = try Command(try Program.path(), ["check", "--data", server.data]).finish()
    #expect(check.status == 0, "\(String(decoding: check.output, as: UTF8.self))")
  }

  /// The files of recordings, except their descriptions, with their SHA-256.
  private func files(_ data: String) throws -> [String] {
    let found = try Command(
      "/usr/bin/env",
      ["-C", data, "sh", "-c", "find recordings -type f ! -name recording.json -print0 | sort -z | xargs -0 sha256sum"]
    ).finish()
    try #require(found.status == 0, "\(found.errors)")
    return String(decoding: found.output, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func check(_ data: String) throws {
    let check = try Command.stillwave("check", "--data", data)
    #expect(check.status == 0, "\(String(decoding: check.output, as: UTF8.self))")
  }

  @Test("a data folder of the version before keys is checked, backed up, restored and opened, and no file is moved")
  func beforeKeys() throws {
    let folder = try TemporaryFolder()
    let data = try unpacked("data-before-keys", into: folder)
    let before = try files(data)
    #expect(before.count == 8)
    try check(data)
    let (backup, restored) = (folder.file("backup"), folder.file("restored"))
    for arguments in [["backup", "--data", data, "-o", backup], ["restore", backup, "--data", restored]] {
      let done = try Command(try Program.path(), arguments).finish()
      try #require(done.status == 0, "\(done.errors)")
    }
    // Checks, backups and restored folders don't have to be of this version.
    for place in [data, restored] {
      #expect(try files(place) == before)
      try check(place)
      let server = try TestServer(dataDirectory: place)
      try expectContent(server)
      try server.stop()
      let after = try files(place)
      #expect(Set(before).isSubset(of: after))
      // One recording more, with its waveform and its map at most.
      #expect((2...3).contains(after.count - before.count), "\(after)")
      try check(place)
    }
  }

  private func expectContent(_ server: TestServer) throws {
    let client = server.client
    let recordings = try #require(try client.get("/v1/recordings").json["recordings"].array)
    #expect(recordings.compactMap { $0["name"].string }.sorted() == ["short (denoised).wav", "short.m4a", "short.wav"])
    for recording in recordings {
      let id = try #require(recording["id"].string)
      #expect(recording["waveform"]["state"] == .string("ready") && recording["warnings"].array?.isEmpty == true)
      #expect(try client.get("/v1/recordings/\(id)/waveform").json["complete"] == .bool(true))
      let audio = server.folder.file("audio-\(id)")
      try write(try client.get("/v1/recordings/\(id)/audio").body, to: audio)
      let sum = try Command("/usr/bin/sha256sum", [audio]).finish()
      #expect(String(decoding: sum.output.prefix(64), as: UTF8.self) == recording["sha256"].string)
      // Read from the working copy of the m4a.
      #expect(try client.get("/v1/recordings/\(id)/spectrum?start=0&end=1").status == 200)
    }
    let short = try #require(recordings.first { $0["name"].string == "short.wav" }?["id"].string)
    let tracks = try #require(try client.get("/v1/recordings/\(short)/labels").json["tracks"].array)
    #expect(tracks.count == 1 && tracks.first?["name"] == .string("Hand") && tracks.first?["count"] == .number(2))
    let jobs = try client.get("/v1/jobs").json["jobs"].array?.count
    #expect(try client.conversion("/v1/recordings/\(short)/audio?format=flac").status == 200)
    #expect(try client.get("/v1/jobs").json["jobs"].array?.count == jobs, "the conversion was made again")
    try finishUpload(of: try client.get("/v1/recordings/\(short)/audio").body, server)
    let isRead = try eventually {
      try client.get("/v1/recordings").json["recordings"].array?.allSatisfy {
        $0["waveform"]["state"] == .string("ready")
      } == true
    }
    #expect(isRead)
  }

  /// Sends the rest of the upload, which becomes a recording.
  private func finishUpload(of bytes: [UInt8], _ server: TestServer) throws {
    let part = try #require(
      try FileManager.default.contentsOfDirectory(atPath: server.data + "/uploads").first { $0.hasSuffix(".part") })
    let path = "/v1/uploads/" + part.dropLast(".part".count)
    let head = try server.client.send("HEAD", path, ["Tus-Resumable": "1.0.0"])
    #expect(head.status == 200 && head["upload-offset"] == "20000")
    let answer = try server.client.send(
      "PATCH", path,
      ["Tus-Resumable": "1.0.0", "Upload-Offset": "20000", "Content-Type": "application/offset+octet-stream"],
      .bytes(Array(bytes.dropFirst(20_000))))
    #expect(answer.status == 204, "\(answer.text)")
    let id = try #require(answer["stillwave-recording"])
    #expect(try server.client.get("/v1/recordings/\(id)/audio").body == bytes)
  }
}
