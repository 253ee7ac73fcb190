import Foundation
import Testing

@testable import Sounds

/// Recordings by phones and browsers work like any other: they have a waveform, and sound and pictures are where they
/// are in the file.
@Suite(.serialized) struct MediaUploadTests {
  private static let video = ["-map", "0:a", "-map", "1:v"] + MediaClip.h264

  static func clip(
    _ name: String, _ container: String, _ codec: String, rate: Int = 48_000, video: [String] = [], _ words: [String]
  ) -> MediaClip {
    MediaClip(
      fileName: name, container: container, codec: codec, rate: rate, hasVideo: !video.isEmpty, words: video + words)
  }

  static let memo = clip("memo.m4a", "m4a", "aac", rate: 44_100, ["-c:a", "aac"])

  /// Each with the seconds by which the file itself has the sound late.
  static let videos: [(MediaClip, Double)] = [
    (clip("phone.mp4", "mp4", "aac", video: video, ["-c:a", "aac"]), 0),
    (clip("phone.mov", "mov", "aac", rate: 44_100, video: video, ["-c:a", "aac"]), 0),
    (clip("camera.mov", "mov", "pcm_s16", video: video, ["-c:a", "pcm_s16le"]), 0),
    (
      clip(
        "fragmented.mp4", "mp4", "aac", video: video,
        ["-c:a", "aac", "-movflags", "frag_keyframe+delay_moov+default_base_moof"]), 0
    ),
    // ffmpeg 5.1 shifts the pictures back by Opus's delay, but not the sound.
    (
      clip(
        "browser.webm", "webm", "opus", video: ["-map", "0:a", "-map", "1:v"] + MediaClip.vp8, ["-c:a", "libopus"]),
      -0.007
    ),
    (clip("film.mkv", "mkv", "vorbis", video: video, ["-c:a", "libvorbis"]), 0),
    (clip("film-aac.mkv", "mkv", "aac", video: video, ["-c:a", "aac"]), 0),
    (
      clip(
        "varying-rate.mp4", "mp4", "aac", video: video + ["-vf", "select='not(mod(n,7))+lt(mod(t+0.001,1),0.041)'"],
        ["-vsync", "vfr", "-c:a", "aac"]), 0
    ),
    (clip("reordered.mp4", "mp4", "aac", video: video + ["-preset", "medium", "-bf", "3"], ["-c:a", "aac"]), 0),
  ]

  /// Each with the seconds by which players have the sound late. `PositionTableTests` has the other kinds of files.
  @Test(
    "sound begins where it does in the file, within a millisecond", .secondTier,
    arguments: [
      (clip("speex.spx", "ogg", "speex", rate: 16_000, ["-c:a", "libspeex", "-q:a", "10"]), 0.014),
      (clip("raw.eac3", "ac3", "eac3", ["-c:a", "eac3"]), 0.0053),
    ])
  func sound(_ clip: MediaClip, late: Double) throws {
    let server = try TestServer()
    let recording = try server.client.uploadReady(contents(clip.make(in: server.folder)), name: clip.fileName)
    let format = recording["format"]
    #expect(format["container"].string == clip.container && format["codec"].string == clip.codec, "\(recording)")
    for (second, beep) in zip([1.0, 4], try server.client.beeps(in: #require(recording["id"].string), near: [1, 4])) {
      #expect(abs(beep - second - late) < 0.001, "\(beep)")
    }
  }

  @Test("a video is served whole, in ranges, and revalidated; a recording without pictures has none")
  func served() throws {
    let server = try TestServer()
    let path = try Self.videos[0].0.make(in: server.folder)
    let file = try contents(path)
    let id = try #require(try server.client.uploadReady(file, name: "phone.mp4")["id"].string)
    let target = "/v1/recordings/\(id)/video"
    let whole = try server.client.get(target)
    #expect(whole.status == 200 && whole.body == file && whole["content-type"] == "video/mp4")
    let tag = try #require(whole["etag"])
    let head = try server.client.send("HEAD", target)
    #expect(head.status == 200 && head.body.isEmpty && head["content-length"] == "\(file.count)" && head["etag"] == tag)
    let part = try server.client.get(target, ["Range": "bytes=100-199", "If-Range": tag])
    #expect(part.status == 206 && part.body == Array(file[100...199]))
    #expect(try server.client.get(target, ["If-None-Match": tag]).status == 304)
    #expect(try server.client.get("/v1/recordings/\(id)/audio")["content-type"] == "audio/mp4")
    let sound = try #require(try server.client.upload(Clip.tone.bytes, name: "tone.wav")["id"].string)
    expectProblem(try server.client.get("/v1/recordings/\(sound)/video"), 404, "no_video")
  }

  @Test("an edit list's start is the recording's beginning")
  func cut() throws {
    let server = try TestServer()
    let plain = try Self.memo.make(in: server.folder)
    let cut = server.folder.file("cut.m4a")
    try Tool.ffmpeg.run(["-v", "error", "-ss", "1.5", "-i", plain, "-c", "copy", cut])
    let recording = try server.client.uploadReady(contents(cut), name: "cut.m4a")
    let beeps = try server.client.beeps(in: try #require(recording["id"].string), near: [0.5, 2.5])
    #expect(abs(beeps[1] - beeps[0] - 2) < 0.0002 && abs(beeps[0] - 0.5) < 0.012, "\(beeps)")
    #expect(abs(try #require(recording["format"]["duration"].double) - 3.5) < 0.03)
  }

  @Test("pauses that a telephone didn't send keep their length")
  func telephone() throws {
    let server = try TestServer()
    let plain = try Self.clip("call.wav", "wav", "pcm_s16", rate: 8000, []).make(in: server.folder)
    let call = server.folder.file("call.amr-nb")
    try Tool.sox.run([plain, "-C", "7", call])
    let recording = try server.client.uploadReady(contents(call), name: "call.amr")
    #expect(recording["format"]["container"].string == "amr" && recording["format"]["codec"].string == "amr_nb")
    #expect(recording["format"]["sample_rate"].int == 8000 && recording["format"]["frames"].int == 40_000)
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["silence_left_out"])
    // The encoder looks 5 ms ahead and takes a moment to get loud.
    let beeps = try server.client.beeps(in: try #require(recording["id"].string), near: [1, 2, 3, 4])
    for (second, beep) in zip([1.0, 2, 3, 4], beeps) { #expect(abs(beep - second - 0.0115) < 0.001, "\(beep)") }
  }

  @Test("sound that goes on after the pictures is read to its end")
  func longSound() throws {
    let server = try TestServer()
    let plain = try Self.videos[0].0.make(in: server.folder)
    let long = server.folder.file("long.mp4")
    try Tool.ffmpeg.run(
      ["-v", "error", "-i", plain, "-t", "2", "-i", plain, "-map", "0:a", "-map", "1:v", "-c", "copy", long])
    let recording = try server.client.uploadReady(contents(long), name: "long.mp4")
    #expect(abs(try #require(recording["format"]["duration"].double) - MediaClip.seconds) < 0.001)
  }

  @Test("the first of two audio tracks is used, with a warning")
  func twoTracks() throws {
    let server = try TestServer()
    let plain = try Self.videos[0].0.make(in: server.folder)
    let two = server.folder.file("two.mp4")
    try Tool.ffmpeg.run(
      [
        "-v", "error", "-i", plain, "-f", "lavfi", "-i", "anullsrc=r=8000:d=5", "-map", "0", "-map", "1:a", "-c:v",
        "copy",
      ]
        + ["-c:a", "aac", two])
    let recording = try server.client.uploadReady(contents(two), name: "two.mp4")
    #expect(recording["format"]["sample_rate"].int == 48_000)
    #expect(recording["warnings"][0]["code"].string == "audio_tracks_left_out")
    _ = try server.client.beeps(in: try #require(recording["id"].string), near: [1.02])
  }

  @Test("a truncated video is read as far as possible, with a warning")
  func truncated() throws {
    let server = try TestServer()
    let plain = try Self.videos[0].0.make(in: server.folder)
    let fast = server.folder.file("fast.mp4")
    try Tool.ffmpeg.run(["-v", "error", "-i", plain, "-c", "copy", "-movflags", "+faststart", fast])
    let bytes = try contents(fast)
    let uploaded = try server.client.upload(Array(bytes.prefix(bytes.count / 2)), name: "cut.mp4")
    #expect(uploaded["warnings"].array?.map { $0["code"].string } == ["truncated"], "the sizes tell it at once")
    try server.client.succeed(try #require(uploaded["waveform"]["job"].string))
    let recording = try server.client.recording(try #require(uploaded["id"].string))
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["truncated"])
    let duration = try #require(recording["format"]["duration"].double)
    #expect(duration > 1 && duration < 4.5)
    let id = try #require(recording["id"].string)
    _ = try server.client.beeps(in: id, near: [1])
    let cleaned = try server.client.cleaned(id)
    #expect(cleaned["warnings"] == .array([]), "the result is whole")
  }

  @Test("a fragmented video whose header promises days is read to its end, with a warning")
  func misstated() throws {
    let folder = try TemporaryFolder()
    let free = try #require(
      try FileManager.default.attributesOfFileSystem(forPath: folder.path)[.systemFreeSize] as? Int)
    // The length in the header would exceed the free space.
    let server = try TestServer("--reserve-bytes", "\(max(1, free - 12 << 30))")
    let plain = try Self.videos[0].0.make(in: server.folder)
    let path = server.folder.file("fragmented.mp4")
    try Tool.ffmpeg.run(
      ["-v", "error", "-i", plain, "-t", "1.07", "-c", "copy", "-movflags", "frag_keyframe+empty_moov", path])
    var file = Data(try contents(path))
    // The length comes after two times and the time scale, and is in its units.
    for kind in ["mvhd", "mdhd"] {
      var place = file.startIndex
      while let found = file.range(of: Data(kind.utf8), in: place..<file.endIndex) {
        place = found.upperBound
        let scale = file[place + 12..<place + 16].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let length = UInt32(min(97_391 * scale, UInt64(UInt32.max) - 1))
        for byte in 0..<4 { file[place + 16 + byte] = UInt8(truncatingIfNeeded: length >> (24 - 8 * byte)) }
      }
    }
    let recording = try server.client.uploadReady(Array(file), name: "fragmented.mp4")
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["length_misstated"])
    #expect(abs(try #require(recording["format"]["duration"].double) - 1.07) < 0.1)
    let job = try server.client.denoise(try #require(recording["id"].string), MediaClip.cleaning)
    try server.client.succeed(try #require(job["id"].string))
  }

  @Test("a browser's recording without a length is read to its end, with warnings")
  func live() throws {
    let server = try TestServer()
    let plain = try Self.videos[4].0.make(in: server.folder)
    let live = server.folder.file("live.webm")
    try Tool.ffmpeg.run(["-v", "error", "-i", plain, "-c", "copy", "-live", "1", live])
    let bytes = try contents(live)
    let recording = try server.client.uploadReady(bytes, name: "live.webm")
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["length_unknown"])
    #expect(abs(try #require(recording["format"]["duration"].double) - MediaClip.seconds) < 0.03)
    let cut = try server.client.uploadReady(Array(bytes.prefix(bytes.count / 2)), name: "cut.webm")
    #expect(cut["warnings"].array?.map { $0["code"].string } == ["truncated", "length_unknown"])
    #expect(try #require(cut["format"]["duration"].double) > 1)
  }

  @Test("playing, previewing, and cleaning use the working copy; deleting removes everything")
  func work() throws {
    let server = try TestServer()
    let path = try Self.videos[0].0.make(in: server.folder)
    let recording = try server.client.uploadReady(contents(path), name: "phone.mp4")
    let id = try #require(recording["id"].string)
    let noise = #""noise":{"quantile":0.2},"reduction":0"#
    let preview = try server.client.post(
      "/v1/recordings/\(id)/denoise/preview", json: "{\(noise),\"window\":{\"start\":0.5,\"end\":1.5}}")
    #expect(preview.status == 200)
    #expect(abs(try WAVFile(reading: preview.body).sound.seconds - 1) < 0.001)
    #expect(try server.client.get("/v1/recordings/\(id)/spectrum?start=1&end=1.1").status == 200)
    #expect(try server.client.get("/v1/recordings/\(id)/noise-regions").json["complete"].bool == true)
    #expect(try server.client.get("/v1/recordings/\(id)/waveform.png?width=300&height=80").status == 200)
    let cleaned = try server.client.cleaned(id, "{\(noise),\"format\":\"flac\"}")
    #expect(cleaned["format"]["frames"] == recording["format"]["frames"])
    let cleanedID = try #require(cleaned["id"].string)
    let beeps = try server.client.beeps(in: cleanedID, near: [1, 4])
    #expect(abs(beeps[0] - 1) < 0.001 && abs(beeps[1] - 4) < 0.001)
    for one in [id, cleanedID] { #expect(try server.client.delete("/v1/recordings/\(one)").status == 204) }
    #expect(try server.leftovers() == [])
  }
}
