import Foundation
import Testing

/// What a tenant may store, tried on files whose working copies are a thousand times as long.
struct StoredBytesLimitTests {
  private static let limit = 3 << 20

  /// A minute of silence in WebM: some 10 KB whose working copy has 23 MB. Without `isSeekable`, the file doesn't give
  /// its length.
  private static func silence(isSeekable: Bool, in folder: TemporaryFolder) throws -> [UInt8] {
    let path = folder.file("silence.webm")
    let words = [
      "-v", "error", "-f", "lavfi", "-i", "anullsrc=r=48000:cl=stereo:d=60", "-c:a", "libopus", "-b:a", "6k",
    ]
    try Tool.ffmpeg.run(words + (isSeekable ? [] : ["-live", "1"]) + [path])
    return try contents(path)
  }

  @Test("a small file with a huge working copy is refused or keeps only its original", arguments: [true, false])
  func workingCopy(isSeekable: Bool) throws {
    let folder = try TemporaryFolder()
    let keys = folder.file("keys.jsonl")
    let command = try Command(
      try Program.path(),
      ["keys", "add", "app", "--tenant", "acme", "--scopes", "read,write,delete", "--keys", keys]
        + ["--limit", "stored_bytes=\(Self.limit)"])
    #expect(try command.finish(withinSeconds: 60).status == 0)
    let bearer = ["Authorization": "Bearer \(try command.output().trimmingCharacters(in: .newlines))"]
    let server = try TestServer("--keys", keys)
    let client = server.client
    func used() throws -> Double? { try client.get("/v1/usage", bearer).json["stored_bytes"]["used"].double }
    let bytes = try Self.silence(isSeekable: isSeekable, in: folder)
    try #require(bytes.count < 100_000)
    let answer = try client.send("POST", "/v1/recordings", bearer, .bytes(bytes))
    guard !isSeekable else {
      expectProblem(answer, 413, "limit_stored_bytes")
      #expect(try used() == 0)
      return try server.stop()
    }
    #expect(answer.status == 201, "\(answer.text)")
    let job = try #require(answer.json["waveform"]["job"].string)
    #expect(
      try eventually { try client.get("/v1/jobs/\(job)?wait=20", bearer).json["state"].string == "failed" })
    let error = try client.get("/v1/jobs/\(job)", bearer).json["error"]
    #expect(error["code"].string == "limit_stored_bytes" && error["status"].double == 413)
    #expect(try used() == Double(bytes.count))
    let id = try #require(answer.json["id"].string)
    #expect(try client.get("/v1/recordings/\(id)/audio", bearer).body == bytes)
    // The original and its description.
    let leftovers = try server.leftovers()
    #expect(leftovers.count { $0.contains(id) && !$0.hasSuffix(id) } == 2, "\(leftovers)")
    try server.stop()
  }
}
