import Foundation
import Testing

/// A data folder that the version before leases left behind when it was killed: see Fixtures/README.md.
struct EarlierVersionTests {
  private func unpacked(into folder: TemporaryFolder) throws -> String {
    let archive = Fixture.path("data-before-leases.tar.gz")
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
