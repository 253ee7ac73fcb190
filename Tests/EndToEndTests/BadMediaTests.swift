import Foundation
import Testing

@testable import Sounds

/// Files that lure ffmpeg to other files, and files that it can't read.
@Suite(.serialized) struct BadMediaTests {
  private static let secret = "/etc/hostname"

  static let lures: [(String, String)] = [
    ("a playlist", "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1,\nfile://\(secret)\n#EXT-X-ENDLIST\n"),
    ("a list of files to join", "ffconcat version 1.0\nfile '\(secret)'\n"),
    ("a manifest", "<?xml version=\"1.0\"?><MPD><Period><BaseURL>\(secret)</BaseURL></Period></MPD>"),
    ("a session description", "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\n"),
  ]

  @Test("a file that refers to other files is rejected, whatever its name", arguments: lures)
  func lure(_ kind: String, text: String) throws {
    let server = try TestServer()
    for name in ["video.mp4", "video.m3u8"] {
      let answer = try server.client.send("POST", "/v1/recordings?name=\(name)", [:], .bytes(Array(text.utf8)))
      expectProblem(answer, 415, "unsupported_media")
    }
    try server.expectNothingKept()
    try server.stop()
  }

  static let broken: [(String, [UInt8])] = [
    ("an MP4's first box alone", [0, 0, 0, 20] + Array("ftypisom".utf8) + [UInt8](repeating: 0, count: 8)),
    ("a Matroska mark before noise", [0x1A, 0x45, 0xDF, 0xA3] + noise),
    ("an ADTS mark before noise", [0xFF, 0xF1, 0x50, 0x80] + noise),
    ("a Windows Media mark before noise", [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11] + noise),
    ("AMR's mark alone", Array("#!AMR\n".utf8)),
    ("AC-3's mark before zeros", [0x0B, 0x77] + [UInt8](repeating: 0, count: 4000)),
  ]

  private static let noise: [UInt8] = {
    var noise = NoiseGenerator(seed: 3)
    return (0..<4000).map { _ in UInt8(truncatingIfNeeded: Int(noise.next() * 1e6)) }
  }()

  @Test("a file that only begins like media is rejected and leaves nothing", arguments: broken)
  func brokenFile(_ kind: String, bytes: [UInt8]) throws {
    let server = try TestServer()
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(bytes))
    expectProblem(answer, 415, "unsupported_media")
    try server.expectNothingKept()
    try server.stop()
  }

  @Test("videos without sound are rejected")
  func silentFilm() throws {
    let server = try TestServer()
    let path = server.folder.file("silent.mp4")
    try Tool.ffmpeg.run(
      ["-v", "error", "-f", "lavfi", "-i", "color=black:s=64x48:r=25:d=1"] + MediaClip.h264 + [path])
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    expectProblem(answer, 415, "unsupported_media")
    #expect(answer.json["detail"].string?.contains("without an audio track") == true)
    try server.expectNothingKept()
    try server.stop()
  }

  @Test("without ffmpeg the answer says what to install, and all else works")
  func missing() throws {
    let server = try TestServer("--ffmpeg", "/nonexistent/ffmpeg")
    let path = try MediaUploadTests.sounds[0].0.make(in: server.folder)
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    expectProblem(answer, 415, "unsupported_media")
    #expect(answer.json["detail"].string?.contains("apt-get install ffmpeg") == true)
    _ = try server.client.uploadReady(BadUploadTests.tone.bytes)
    try server.stop()
  }

  @Test(
    "an ffmpeg that is killed, fails, or writes endlessly costs only that upload",
    arguments: [
      ("killed", 503, "unavailable"), ("exit-3", 415, "unsupported_media"), ("endless", 415, "unsupported_media"),
    ])
  func brokenProgram(_ deed: String, status: Int, code: String) throws {
    let programs = try FailingProgramTests.Programs(deed, failsToProbe: false)
    let server = try TestServer("--ffmpeg", programs.ffmpeg)
    let path = try MediaUploadTests.sounds[0].0.make(in: server.folder)
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    expectProblem(answer, status, code)
    try server.expectNothingKept()
    _ = try server.client.uploadReady(BadUploadTests.tone.bytes)
    try server.stop()
  }

  /// A Matroska file with this number of audio tracks, by RFC 9559.
  private static func film(tracks: Int) -> [UInt8] {
    func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    func element(_ identifier: [UInt8], _ content: [UInt8]) -> [UInt8] {
      identifier + [UInt8(0x10 | content.count >> 24)] + number(content.count).dropFirst() + content
    }
    let kind = element([0x42, 0x82], Array("matroska".utf8))
    let entries = (1...tracks).flatMap { track in
      element(
        [0xAE],
        element([0xD7], number(track)) + element([0x73, 0xC5], number(track)) + element([0x83], [2])
          + element([0x86], Array("A_PCM/INT/LIT".utf8)) + element([0xE1], element([0x9F], [1])))
    }
    let block = element([0xA3], [0x81, 0, 0, 0x80] + [UInt8](repeating: 7, count: 1000))
    let cluster = element([0x1F, 0x43, 0xB6, 0x75], element([0xE7], [0]) + block)
    return element([0x1A, 0x45, 0xDF, 0xA3], kind)
      + element([0x18, 0x53, 0x80, 0x67], element([0x16, 0x54, 0xAE, 0x6B], entries) + cluster)
  }

  @Test("thousands of tracks are rejected, hundreds are not")
  func tracks() throws {
    let server = try TestServer()
    let many = try server.client.send("POST", "/v1/recordings", [:], .bytes(Self.film(tracks: 10_000)))
    expectProblem(many, 415, "unsupported_media")
    try server.expectNothingKept()
    let recording = try server.client.uploadReady(Self.film(tracks: 300), name: "many.mkv")
    #expect(recording["warnings"][0]["detail"].string?.contains("300 audio tracks") == true, "\(recording)")
    try server.stop()
  }

  @Test("the service's limits apply to files that ffmpeg reads")
  func limits() throws {
    let server = try TestServer("--max-duration", "2")
    let path = try MediaUploadTests.sounds[0].0.make(in: server.folder)
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(try contents(path)))
    expectProblem(answer, 422, "unsupported_format")
    // Raw AAC doesn't contain its length, so its job finds it out.
    let raw = try MediaUploadTests.sounds[7].0.make(in: server.folder)
    let uploaded = try server.client.upload(contents(raw), name: "raw.aac")
    let job = try server.client.follow(try #require(uploaded["waveform"]["job"].string))
    #expect(job["state"].string == "failed" && job["error"]["code"].string == "unsupported_format")
    try server.stop()
  }

  @Test("samples in a video that aren't finite become silence, in its working copy too")
  func notFinite() throws {
    let server = try TestServer()
    let (raw, film) = (server.folder.file("raw"), server.folder.file("a.mkv"))
    var samples = (0..<30_000).map { Float($0 % 100) / 50 }
    for index in [0, 1500, 29_999] { samples[index] = .nan }
    samples[20_000] = -.infinity
    try write(
      samples.flatMap { sample in (0..<4).map { UInt8(truncatingIfNeeded: sample.bitPattern >> (8 * $0)) } }, to: raw)
    try Tool.ffmpeg.run(["-v", "error", "-f", "f32le", "-ar", "8000", "-ac", "1", "-i", raw, "-c:a", "pcm_f32le", film])
    let recording = try server.client.uploadReady(contents(film), name: "a.mkv")
    #expect(recording["warnings"].array?.contains { $0["code"].string == "non_finite_samples" } == true, "\(recording)")
    #expect(recording["warnings"].array?.first?["detail"].string?.contains("4") == true, "\(recording)")
    let id = try #require(recording["id"].string)
    let part = try WAVFile(reading: server.client.get("/v1/recordings/\(id)/audio?start=0&end=3.75").body)
    #expect(part.format == 3 && part.sound.channels[0].map(Float.init) == samples.map { $0.isFinite ? $0 : 0 })
    try server.stop()
  }
}
