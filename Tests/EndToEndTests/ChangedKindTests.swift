import Foundation
import Testing

/// A cleaned file's warnings are about that file: they name another codec, but no error that only its source has.
@Suite(.serialized) struct ChangedKindTests {
  /// Each with the codec of the result and its warnings.
  static let rows: [(PositionRow, codec: String, codes: [String])] = [
    (PositionRow("sound alone", "ffmpeg", "a.mka", "ffmpeg -i SOUND -c:a aac OUT"), "opus", ["format_changed"]),
    (PositionRow("sound alone", "ffmpeg", "b.mka", "ffmpeg -i SOUND -c:a libmp3lame OUT"), "opus", ["format_changed"]),
    (PositionRow("film", "ffmpeg", "c.mkv", "ffmpeg -i FILM -c:v copy -c:a ac3 OUT"), "opus", ["format_changed"]),
    (PositionRow("film", "ffmpeg", "d.mkv", "ffmpeg -i FILM -c copy OUT"), "aac", []),
    (
      PositionRow("film", "ffmpeg", "e.mp4", "ffmpeg -i FILM -c:v copy -c:a libopus -strict -2 OUT"), "aac",
      ["format_changed"]
    ),
    (
      PositionRow("MP3 in WAV", "ffmpeg", "f.wav", "ffmpeg -i SOUND -c:a libmp3lame OUT"), "pcm_s16", ["format_changed"]
    ),
    (
      PositionRow("MP2", "ffmpeg", "g.mp2", "ffmpeg -i SOUND -c:a mp2 OUT"), "mp3",
      ["seeks_inexactly", "format_changed"]
    ),
    (PositionRow("MP3", "ffmpeg", "h.mp3", "ffmpeg -i SOUND OUT"), "mp3", ["seeks_inexactly"]),
    (PositionRow("WAV", "SoX", "i.wav", "sox SOUND OUT"), "pcm_s16", []),
  ]

  @Test("a codec that differs from the source's is named once")
  func named() throws {
    let server = try TestServer("--workers", "2")
    let material = try PositionRow.Material(in: server.folder)
    for row in Self.rows {
      let cleaned = try clean(contents(row.0.make(material)), row.0.file, server)
      #expect(cleaned["format"]["codec"].string == row.codec, "\(row.0.file): \(cleaned)")
      #expect(codes(cleaned) == row.codes, "\(row.0.file): \(cleaned)")
    }
  }

  @Test("leading bytes and a missing end of the source aren't reported for the result")
  func ownFaults() throws {
    let server = try TestServer("--workers", "2")
    let material = try PositionRow.Material(in: server.folder)
    let mp3 = try contents(PositionRow("", "", "a.mp3", "ffmpeg -i SOUND OUT").make(material))
    let adts = try contents(PositionRow("", "", "a.aac", "ffmpeg -i SOUND -c:a aac OUT").make(material))
    let wav = try contents(material.sound)
    let zeros = [UInt8](repeating: 0, count: 3000)
    let files: [(String, [UInt8], String, [String])] = [
      ("a.mp3", zeros + mp3, "leading_bytes", ["seeks_inexactly"]),
      ("a.aac", zeros + adts, "leading_bytes", ["format_changed"]),
      ("a.wav", Array(wav.prefix(wav.count - 20_000)), "truncated", []),
    ]
    for (name, file, code, expected) in files {
      let source = try server.client.uploadReady(file, name: name)
      #expect(codes(source).contains(code), "\(name): \(source)")
      #expect(try codes(clean(file, name, server)) == expected, "\(name)")
    }
    // Sound lost in the source is lost in the result, too.
    var floats = Array(wav.prefix(36))
    floats.replaceSubrange(4..<8, with: [0x24, 0xDC, 0x05, 0x00])
    floats.replaceSubrange(20..<36, with: [3, 0, 1, 0, 0x80, 0xBB, 0, 0, 0, 0xEE, 2, 0, 4, 0, 32, 0])
    let samples = [UInt8](repeating: 0, count: 4 * 95_999) + [0, 0, 0xC0, 0x7F]
    floats += Array("data".utf8) + [0x00, 0xDC, 0x05, 0x00] + samples
    #expect(try codes(clean(floats, "nan.wav", server)) == ["non_finite_samples"])
  }

  private func codes(_ recording: JSON) -> [String] {
    recording["warnings"].array?.compactMap { $0["code"].string } ?? ["none"]
  }

  private func clean(_ file: [UInt8], _ name: String, _ server: TestServer) throws -> JSON {
    let source = try server.client.uploadReady(file, name: name)
    let job = try server.client.denoise(try #require(source["id"].string), MediaClip.cleaning)
    try server.client.succeed(try #require(job["id"].string))
    return try server.client.recording(try #require(job["result"]["recording"].string))
  }
}
