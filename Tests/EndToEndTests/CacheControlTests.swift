import Foundation
import Testing

@testable import Sounds

/// What caches may keep, by the setting `--cache-control`.
struct CacheControlTests {
  private static let shared = "public, max-age=31536000, s-maxage=3600, immutable"

  @Test func aSharedCacheMayKeepWhatNeverChangesAndNothingElse() throws {
    let server = try TestServer("--cache-control", "public")
    let recording = try server.client.upload(BadUploadTests.tone.bytes, name: "tone.wav")
    try server.client.succeed(try #require(recording["waveform"]["job"].string))
    let path = "/v1/recordings/\(try #require(recording["id"].string))"
    for target in [
      "/audio", "/audio?download=1", "/audio?start=0&end=0.1", "/waveform", "/waveform.dat", "/waveform.json",
      "/peaks.json", "/waveform.png", "/waveform.svg", "/spectrum?start=0&end=0.1",
    ] {
      let answer = try server.client.get(path + target)
      #expect(answer.status == 200 && answer["cache-control"] == Self.shared, "\(target)")
      let tag = try #require(answer["etag"])
      let again = try server.client.get(path + target, ["If-None-Match": tag])
      #expect(again.status == 304 && again["cache-control"] == Self.shared, "\(target)")
    }
    #expect(try server.client.get("\(path)/audio", ["Range": "bytes=0-9"])["cache-control"] == Self.shared)
    #expect(try server.client.conversion("\(path)/audio?format=flac")["cache-control"] == Self.shared)
    for target in [path, "/v1/recordings", "/v1/jobs", "\(path)/labels", "/"] {
      #expect(try server.client.get(target)["cache-control"] == "no-cache", "\(target)")
    }
    for target in ["\(path)/audio?x=1", "/v1/recordings/\(UUID().uuidString.lowercased())/audio", "/healthz"] {
      #expect(try server.client.get(target)["cache-control"] == "no-store", "\(target)")
    }
    try server.stop()
  }

  @Test func onlyAResponseThatAcceptChoosesVariesByIt() throws {
    let server = try TestServer("--cache-control", "public", "--cors-origin", "https://app.example")
    let recording = try server.client.upload(BadUploadTests.tone.bytes, name: "tone.wav")
    try server.client.succeed(try #require(recording["waveform"]["job"].string))
    let path = "/v1/recordings/\(try #require(recording["id"].string))"
    let dat = ["Accept": "application/vnd.bbc.audiowaveform"]
    // Twice, because the second answer may be kept for the third.
    for _ in 0..<3 {
      for (target, fields, names) in [
        ("/waveform", [:], ["accept", "accept-encoding", "origin"]), ("/waveform", dat, ["accept", "origin"]),
        ("/waveform.dat", [:], ["origin"]), ("/waveform.json", [:], ["accept-encoding", "origin"]),
        ("/peaks.json", [:], ["accept-encoding", "origin"]), ("/waveform.png", [:], ["origin"]),
        ("/waveform.svg", [:], ["accept-encoding", "origin"]), ("/audio", [:], ["origin"]),
      ] {
        let vary = try server.client.get(path + target, fields)["vary"] ?? ""
        let found = vary.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces).lowercased() }
        #expect(found.sorted() == names, "\(target) \(fields)")
      }
    }
    try server.stop()
  }

  @Test func aServiceWithKeysDoesNotStartWithIt() throws {
    let folder = try TemporaryFolder()
    let command = try Command(
      try Program.path(),
      ["serve", "--data", folder.file("data"), "--keys", folder.file("keys"), "--cache-control", "public"])
    let finished = try command.finish(withinSeconds: 30)
    #expect(finished.status != 0)
    #expect(finished.errors.contains("--cache-control public can't be used with --keys"), "\(finished.errors)")
  }
}
