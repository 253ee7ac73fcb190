import Foundation
import Randomness
import Testing

/// Raw streams whose first frame isn't at the beginning.
@Suite(.serialized) struct FoundFramesTests {
  static let kinds = [
    ("mp3", "mp3", ["-c:a", "libmp3lame"]), ("mp2", "mp3", ["-c:a", "mp2"]), ("aac", "adts", ["-c:a", "aac"]),
    ("ac3", "ac3", ["-c:a", "ac3"]), ("eac3", "ac3", ["-c:a", "eac3"]),
  ]

  private static let tag2 = Array("ID3".utf8) + [4, 0, 0, 0, 0, 2, 0] + [UInt8](repeating: 0, count: 256)
  private static let tag1 = Array("TAG".utf8) + [UInt8](repeating: 0x20, count: 125)

  @Test("sound is found after zeros, byte order marks, tags, and noise of up to 64 KiB", .secondTier, arguments: kinds)
  func front(_ ending: String, container: String, codec: [String]) throws {
    let server = try TestServer()
    let path = server.folder.file("plain." + ending)
    try Tool.ffmpeg.run(
      ["-v", "error", "-f", "lavfi", "-i", "aevalsrc=0.5*sin(2*PI*440*t):s=48000:d=1.5"] + codec + [path])
    let plain = try contents(path)
    let client = server.client
    let frames = try client.uploadReady(plain, name: "plain." + ending)["format"]["frames"].int
    var random = TestRandom(for: 311)
    let noise = (0..<3000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let fronts: [(String, [UInt8], Int?)] = [
      ("zeros", [UInt8](repeating: 0, count: 5000), 5000), ("a byte order mark", [0xEF, 0xBB, 0xBF], 3),
      ("ID3v1", Self.tag1, 128), ("ID3v2", Self.tag2, nil), ("noise", noise, 3000),
      ("65,000 zeros", [UInt8](repeating: 0, count: 65_000), 65_000),
    ]
    for (name, front, count) in fronts {
      let recording = try client.uploadReady(front + plain, name: "a." + ending)
      #expect(recording["format"]["container"].string == container, "\(name)")
      // Behind other bytes, players don't recognize the frame that counts, and play it and the encoder's delay.
      let isCounted = ending != "mp3" || count == nil
      #expect(recording["format"]["frames"].int == (isCounted ? frames : 64 * 1152), "\(name)")
      let warning = recording["warnings"].array?.first { $0["code"].string == "leading_bytes" }
      #expect(warning?["detail"].string?.hasPrefix("\(count ?? 0) bytes") == (count == nil ? nil : true), "\(name)")
    }
    let cut = try client.uploadReady(Array(plain.dropFirst(plain.count / 3 + 37)), name: "cut." + ending)
    #expect(cut["warnings"].array?.contains { $0["code"].string == "leading_bytes" } == true)
    #expect(try #require(cut["format"]["duration"].double) > 0.8)
    let far = try client.send(
      "POST", "/v1/recordings", [:], .bytes([UInt8](repeating: 0, count: 70_000) + plain))
    #expect(far.status == 415)
  }

  @Test("an MP3 in a WAV file is reported as truncated only if it is")
  func mp3InWave() throws {
    let server = try TestServer()
    let path = server.folder.file("mp3.wav")
    try Tool.ffmpeg.run(
      ["-v", "error", "-f", "lavfi", "-i", "aevalsrc=0.5*sin(2*PI*440*t):s=48000:d=3", "-c:a", "libmp3lame", path])
    let file = try contents(path)
    #expect(try server.client.uploadReady(file)["warnings"].array?.isEmpty == true)
    let cut = try server.client.uploadReady(Array(file.prefix(file.count / 2)))
    #expect(cut["warnings"].array?.map { $0["code"].string } == ["truncated"])
  }
}

/// Files by other muxers: see Fixtures/README.md.
enum Fixture {
  static func path(_ name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/" + name).path
  }
}
