import Foundation
import Testing

@testable import Sounds

/// The formats of broadcasts, old cameras, discs, and archives.
@Suite(.serialized) struct MoreFormatsTests {
  private static let mpeg2 = ["-map", "0:a", "-map", "1:v", "-c:v", "mpeg2video"]
  private static let mpeg4 = ["-map", "0:a", "-map", "1:v", "-c:v", "mpeg4"]
  private static let h264 = ["-map", "0:a", "-map", "1:v"] + MediaClip.h264 + ["-preset", "medium", "-bf", "2"]

  private static func clip(
    _ name: String, _ container: String, _ codec: String, rate: Int = 48_000, video: [String] = [], _ words: [String]
  ) -> MediaClip {
    MediaClip(
      fileName: name, container: container, codec: codec, rate: rate, hasVideo: !video.isEmpty, words: video + words)
  }

  /// Each with the container and codec of the cleaned file.
  static let clips: [(MediaClip, String, String)] = [
    (clip("film.ts", "ts", "aac", video: h264, ["-c:a", "aac"]), "ts", "aac"),
    (
      clip("disc.m2ts", "ts", "ac3", video: h264, ["-c:a", "ac3", "-mpegts_m2ts_mode", "1", "-f", "mpegts"]), "ts",
      "ac3"
    ),
    (clip("radio.ts", "ts", "mp2", ["-c:a", "mp2"]), "ts", "mp2"),
    (clip("film.avi", "avi", "mp3", video: h264, ["-c:a", "libmp3lame"]), "avi", "mp3"),
    (clip("camera.avi", "avi", "pcm_s16", video: h264, ["-c:a", "pcm_s16le"]), "avi", "pcm_s16"),
    (clip("film.flv", "flv", "aac", video: h264, ["-c:a", "aac"]), "flv", "aac"),
    (clip("old.flv", "flv", "mp3", rate: 44_100, ["-c:a", "libmp3lame"]), "flv", "aac"),
    (clip("film.mpg", "mpg", "mp2", video: mpeg2, ["-c:a", "mp2"]), "mpg", "mp2"),
    (clip("disc.vob", "mpg", "ac3", video: mpeg2, ["-c:a", "ac3", "-f", "vob"]), "mpg", "ac3"),
    (clip("camera.mov", "mov", "aac", video: mpeg4, ["-c:a", "aac"]), "mov", "aac"),
    (clip("player.mp4", "mp4", "aac", video: mpeg4, ["-c:a", "aac"]), "mp4", "aac"),
    (clip("lossless.caf", "caf", "alac", ["-c:a", "alac"]), "caf", "alac"),
    (clip("speech.caf", "caf", "opus", ["-c:a", "libopus"]), "caf", "opus"),
    (clip("ima.caf", "caf", "adpcm_ima_qt", ["-c:a", "adpcm_ima_qt"]), "caf", "alac"),
    (clip("archive.wv", "wv", "wavpack", ["-c:a", "wavpack"]), "wv", "wavpack"),
    (clip("archive.tta", "tta", "tta", ["-c:a", "tta"]), "tta", "tta"),
    (clip("film.dts", "dts", "dts", ["-c:a", "dca", "-strict", "-2", "-f", "dts"]), "wav", "pcm_f32"),
    (clip("phone.wav", "wav", "adpcm_g726", rate: 8000, ["-c:a", "g726"]), "wav", "adpcm_g726"),
    (clip("game.voc", "voc", "pcm_u8", rate: 8000, ["-c:a", "pcm_u8"]), "voc", "pcm_u8"),
  ]

  @Test("sound and pictures of each are read, and cleaning moves no picture", .secondTier, arguments: clips)
  func walk(_ clip: MediaClip, container: String, codec: String) throws {
    let server = try TestServer()
    let path = try clip.make(in: server.folder)
    let recording = try server.client.uploadReady(contents(path), name: clip.fileName)
    #expect(recording["format"]["container"].string == clip.container)
    #expect(recording["format"]["codec"].string == clip.codec)
    let codes = recording["warnings"].array?.map { $0["code"].string }
    #expect(codes == (clip.container == "dts" ? ["seeks_inexactly"] : []), "\(recording["warnings"])")
    #expect(recording["video"]["width"].int == (clip.hasVideo ? 64 : nil))
    #expect(abs(try #require(recording["format"]["duration"].double) - MediaClip.seconds) < 0.15)

    let id = try #require(recording["id"].string)
    let cleaned = try server.client.cleaned(id)
    #expect(cleaned["format"]["container"].string == container && cleaned["format"]["codec"].string == codec)
    #expect(cleaned["format"]["frames"] == recording["format"]["frames"])
    let isOther = container != clip.container || codec != clip.codec
    #expect(cleaned["warnings"].array?.map { $0["code"].string } == (isOther ? ["format_changed"] : []))
    let target = "/v1/recordings/\(try #require(cleaned["id"].string))"
    let file = try server.client.get("\(target)/audio").body
    let again = try server.client.uploadReady(file, name: cleaned["name"].string ?? "")
    #expect(again["format"]["container"].string == container, "\(again)")
    #expect(again["format"]["codec"].string == codec)
    #expect(again["warnings"].array?.isEmpty == true, "\(again["warnings"])")
    guard clip.hasVideo else { return try server.stop() }
    #expect(cleaned["video"] == recording["video"])
    let out = server.folder.file("cleaned-\(clip.fileName)")
    try write(file, to: out)
    #expect(try Self.pictures(out) == Self.pictures(path))
  }

  /// The time of each picture, if the file has it, and its packet's checksum.
  private static func pictures(_ path: String) throws -> [String] {
    let probe = try Command(
      "/usr/bin/env",
      ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=pkt_dts_time", "-of", "csv=p=0", path]
    ).finish()
    let packets = try ffmpegLines(["-i", path, "-map", "0:v", "-c", "copy", "-f", "framecrc", "-"])
      .filter { !$0.hasPrefix("#") }.map { $0.split(separator: ",").dropFirst(4).prefix(2).joined() }
    let times: [String] = probe.lines.filter { !$0.isEmpty }
    return times + packets
  }

  /// By name of a fixture: the container, the codec, and whether there are pictures.
  static let fixtures: [(String, String, String, Bool)] = [
    ("gst.ts", "ts", "aac", true), ("gst.avi", "avi", "mp3", true), ("gst.flv", "flv", "aac", true),
    ("gst.mpg", "mpg", "aac", true), ("wavpack.wv", "wv", "wavpack", false), ("mpcenc.mpc", "mpc", "musepack8", false),
    ("sox.voc", "voc", "pcm_s16", false),
  ]

  @Test("files by programs other than ffmpeg are read, cleaned, and read again", .secondTier, arguments: fixtures)
  func others(_ name: String, container: String, codec: String, hasVideo: Bool) throws {
    let server = try TestServer()
    let recording = try server.client.uploadReady(contents(Fixture.path(name)), name: name)
    #expect(recording["format"]["container"].string == container && recording["format"]["codec"].string == codec)
    #expect(recording["warnings"].array?.isEmpty == true, "\(recording["warnings"])")
    #expect((recording["video"]["width"].int != nil) == hasVideo)
    #expect(try #require(recording["format"]["duration"].double) > 0.9)
    let id = try #require(recording["id"].string)
    let slice = try server.client.get("/v1/recordings/\(id)/waveform?start=0.5&end=0.6&scale=1")
    #expect(slice.status == 200, "\(slice.text.prefix(300))")
    let cleaned = try #require(try server.client.cleaned(id)["id"].string)
    let again = try server.client.get("/v1/recordings/\(cleaned)/audio").body
    #expect(try server.client.uploadReady(again, name: name)["video"] == recording["video"])
  }

  @Test("H.264 in a program stream becomes a transport stream, in which pictures keep their times")
  func programStream() throws {
    let server = try TestServer()
    let source = try server.client.uploadReady(contents(Fixture.path("gst.mpg")), name: "gst.mpg")
    let id = try #require(try server.client.cleaned(source)["id"].string)
    let cleaned = try server.client.recording(id)
    #expect(cleaned["format"]["container"].string == "ts" && cleaned["format"]["codec"].string == "aac")
    #expect(cleaned["name"].string?.hasSuffix(".ts") == true)
    #expect(cleaned["warnings"].array?.map { $0["code"].string } == ["format_changed"])
    let answer = try server.client.get("/v1/recordings/\(id)/audio")
    #expect(answer["Content-Type"] == "audio/mp2t")
    let path = server.folder.file("cleaned.ts")
    try write(answer.body, to: path)
    let times = try PositionTableTests().pictureTimes(Fixture.path("gst.mpg"))
    #expect(try PositionTableTests().pictureTimes(path) == times && times.count == 25)
  }

  private static func emptied(_ file: [UInt8], from place: Int) -> [UInt8] {
    Array(file.prefix(place)) + [UInt8](repeating: 0, count: max(file.count - place, 0))
  }

  @Test(
    "truncated, emptied, and noisy ones are rejected or read as far as possible", .secondTier, arguments: clips.map(\.0)
  )
  func hostile(_ clip: MediaClip) throws {
    let server = try TestServer()
    let file = try contents(try clip.make(in: server.folder))
    var random = NoiseGenerator(seed: 17)
    var noisy = file
    for _ in 0..<40 {
      let share: Double = (random.next() + 1) / 2
      let place = 12 + Int(share * Double(file.count - 13))
      noisy[place] = UInt8(truncatingIfNeeded: Int(random.next() * 1e6))
    }
    let half = file.count / 2
    let variants: [[UInt8]] = [
      Array(file[..<(half + 1)]), Array(file.prefix(64)), Array(file.prefix(600)), Self.emptied(file, from: 64),
      Self.emptied(file, from: half), noisy,
    ]
    for bytes in variants {
      let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(bytes))
      #expect([201, 415, 422].contains(answer.status), "\(answer.text)")
      guard let job = answer.json["waveform"]["job"].string else { continue }
      let ended = try server.client.follow(job)
      let isFault = ended["state"].string != "succeeded" && ended["error"]["status"].int ?? 500 >= 500
      #expect(!isFault, "\(ended)")
    }
  }
}
