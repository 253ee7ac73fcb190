import Foundation
import Testing

@testable import Sounds

/// Recordings by phones and browsers work like any other: they have a waveform, and sound and pictures are where they
/// are in the file.
@Suite(.serialized) struct MediaUploadTests {
  private static let video = ["-map", "0:a", "-map", "1:v"] + MediaClip.h264

  private static func clip(
    _ name: String, _ container: String, _ codec: String, rate: Int = 48_000, video: [String] = [], _ words: [String]
  ) -> MediaClip {
    MediaClip(
      fileName: name, container: container, codec: codec, rate: rate, hasVideo: !video.isEmpty, words: video + words)
  }

  /// Each with the seconds by which players have the sound late: the encoder's delay, which these containers don't
  /// store, minus what ffmpeg drops of it.
  static let sounds: [(MediaClip, Double)] = [
    (clip("memo.m4a", "m4a", "aac", rate: 44_100, ["-c:a", "aac"]), 0),
    (clip("memo-alac.m4a", "m4a", "alac", ["-c:a", "alac"]), 0),
    (clip("sound.webm", "webm", "opus", ["-c:a", "libopus"]), 0),
    (clip("sound.mka", "mkv", "vorbis", ["-c:a", "libvorbis"]), 0),
    (clip("flac.oga", "ogg", "flac", rate: 44_100, ["-c:a", "flac"]), 0),
    (clip("speex.spx", "ogg", "speex", rate: 16_000, ["-c:a", "libspeex", "-q:a", "10"]), 0.014),
    (clip("sound.wma", "asf", "wmav2", rate: 44_100, ["-c:a", "wmav2"]), -0.0468),
    (clip("raw.aac", "adts", "aac", ["-c:a", "aac"]), 0.0213),
    (clip("raw.ac3", "ac3", "ac3", ["-c:a", "ac3"]), 0.0053),
    (clip("raw.eac3", "ac3", "eac3", ["-c:a", "eac3"]), 0.0053),
  ]

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
    // Without an edit list.
    (
      clip(
        "stream.mp4", "mp4", "aac", video: video,
        ["-c:a", "aac", "-movflags", "frag_keyframe+empty_moov+default_base_moof"]), 0
    ),
    // ffmpeg 5.1 shifts the pictures back by Opus's delay, but not the sound.
    (
      clip(
        "browser.webm", "webm", "opus", video: ["-map", "0:a", "-map", "1:v"] + MediaClip.vp8, ["-c:a", "libopus"]),
      -0.007
    ),
    (clip("film.mkv", "mkv", "vorbis", video: video, ["-c:a", "libvorbis"]), 0),
    (clip("film-aac.mkv", "mkv", "aac", video: video, ["-c:a", "aac"]), 0),
    (clip("film-ac3.mkv", "mkv", "ac3", video: video, ["-c:a", "ac3"]), 0),
    (
      clip(
        "varying-rate.mp4", "mp4", "aac", video: video + ["-vf", "select='not(mod(n,7))+lt(mod(t+0.001,1),0.041)'"],
        ["-vsync", "vfr", "-c:a", "aac"]), 0
    ),
    (clip("reordered.mp4", "mp4", "aac", video: video + ["-preset", "medium", "-bf", "3"], ["-c:a", "aac"]), 0),
  ]

  @Test("sound begins where it does in the file, within a millisecond", .secondTier, arguments: sounds)
  func sound(_ clip: MediaClip, late: Double) throws {
    let server = try TestServer()
    let (recording, path) = try upload(clip, to: server)
    let id = try #require(recording["id"].string)
    for (second, beep) in zip([1.0, 2, 3, 4], try server.client.beeps(in: id, near: [1, 2, 3, 4])) {
      #expect(abs(beep - second - late) < 0.001, "\(beep)")
    }
    #expect(abs(try #require(recording["format"]["duration"].double) - MediaClip.seconds) < 0.1)
    #expect(recording["video"] == .null)
    #expect(try server.client.get("/v1/recordings/\(id)/audio").body == contents(path))
    try server.stop()
  }

  @Test("sound and pictures stay together, within a millisecond", .secondTier, arguments: videos)
  func picture(_ clip: MediaClip, late: Double) throws {
    let server = try TestServer()
    let (recording, path) = try upload(clip, to: server)
    let id = try #require(recording["id"].string)
    let flashes = try flashes(in: path)
    #expect(flashes.count == 4, "\(flashes)")
    for (flash, beep) in zip(flashes, try server.client.beeps(in: id, near: flashes)) {
      #expect(abs(beep - flash - late) < 0.001, "the flash is at \(flash), the beep at \(beep)")
    }
    #expect(recording["video"]["width"].int == 64 && recording["video"]["height"].int == 48)
    try server.stop()
  }

  @Test("sound that begins later or earlier than the pictures stays where it is", arguments: ["0.3", "-0.3"])
  func offset(_ seconds: String) throws {
    let server = try TestServer()
    let clip = Self.videos[0].0
    let plain = try clip.make(in: server.folder)
    let moved = server.folder.file("moved.mp4")
    try Tool.ffmpeg.run(
      ["-v", "error", "-i", plain, "-itsoffset", seconds, "-i", plain, "-map", "0:v", "-map", "1:a", "-c", "copy"]
        + ["-avoid_negative_ts", "disabled", moved])
    let recording = try server.client.uploadReady(contents(moved), name: "moved.mp4")
    let late = try #require(Double(seconds))
    let beeps = try server.client.beeps(in: try #require(recording["id"].string), near: [1 + late, 4 + late])
    // Edit lists written by ffmpeg count milliseconds.
    #expect(abs(beeps[0] - 1 - late) < 0.0011 && abs(beeps[1] - 4 - late) < 0.0011, "\(beeps)")
    try server.stop()
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
    let sound = try #require(try server.client.upload(BadUploadTests.tone.bytes, name: "tone.wav")["id"].string)
    expectProblem(try server.client.get("/v1/recordings/\(sound)/video"), 404, "no_video")
    try server.stop()
  }

  @Test("an edit list's start is the recording's beginning")
  func cut() throws {
    let server = try TestServer()
    let plain = try Self.sounds[0].0.make(in: server.folder)
    let cut = server.folder.file("cut.m4a")
    try Tool.ffmpeg.run(["-v", "error", "-ss", "1.5", "-i", plain, "-c", "copy", cut])
    let recording = try server.client.uploadReady(contents(cut), name: "cut.m4a")
    let beeps = try server.client.beeps(in: try #require(recording["id"].string), near: [0.5, 2.5])
    #expect(abs(beeps[1] - beeps[0] - 2) < 0.0002 && abs(beeps[0] - 0.5) < 0.012, "\(beeps)")
    #expect(abs(try #require(recording["format"]["duration"].double) - 3.5) < 0.03)
    try server.stop()
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
    try server.stop()
  }

  @Test("negative times are kept: the first sound or picture is the beginning")
  func negative() throws {
    let server = try TestServer()
    let plain = try Self.videos[0].0.make(in: server.folder)
    let early = server.folder.file("early.mkv")
    try Tool.ffmpeg.run(
      ["-v", "error", "-itsoffset", "-0.5", "-i", plain, "-c", "copy", "-avoid_negative_ts", "disabled", early])
    let recording = try server.client.uploadReady(contents(early), name: "early.mkv")
    let flashes = try flashes(in: early).map { $0 + 0.521 }
    let beeps = try server.client.beeps(in: try #require(recording["id"].string), near: flashes)
    for (flash, beep) in zip(flashes, beeps) { #expect(abs(beep - flash) < 0.001, "\(flash) \(beep)") }
    try server.stop()
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
    try server.stop()
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
    try server.stop()
  }

  @Test("the working copy of a lossless file is lossless")
  func lossless() throws {
    let server = try TestServer()
    let path = try Self.sounds[1].0.make(in: server.folder)
    let recording = try server.client.uploadReady(contents(path), name: "memo.m4a")
    let id = try #require(recording["id"].string)
    let dat = try server.client.get("/v1/recordings/\(id)/waveform.dat?scale=16&start=0.99&end=1.3").body
    let plain = server.folder.file("plain.wav")
    try Tool.ffmpeg.run(["-v", "error", "-i", path, plain])
    let same = try server.client.uploadReady(contents(plain), name: "plain.wav")
    #expect(same["format"]["frames"] == recording["format"]["frames"])
    let other = try #require(same["id"].string)
    #expect(try server.client.get("/v1/recordings/\(other)/waveform.dat?scale=16&start=0.99&end=1.3").body == dat)
    let whole = try server.client.get("/v1/recordings/\(id)/waveform.dat?scale=256").body
    #expect(try server.client.get("/v1/recordings/\(other)/waveform.dat?scale=256").body == whole)
    try server.stop()
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
    let job = try server.client.denoise(id, MediaClip.cleaning)
    try server.client.succeed(try #require(job["id"].string))
    let cleaned = try server.client.recording(try #require(job["result"]["recording"].string))
    #expect(cleaned["warnings"] == .array([]), "the result is whole")
    try server.stop()
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
    try server.stop()
  }

  @Test("a browser's recording without a length is read to its end, with warnings")
  func live() throws {
    let server = try TestServer()
    let plain = try Self.videos[5].0.make(in: server.folder)
    let live = server.folder.file("live.webm")
    try Tool.ffmpeg.run(["-v", "error", "-i", plain, "-c", "copy", "-live", "1", live])
    let bytes = try contents(live)
    let recording = try server.client.uploadReady(bytes, name: "live.webm")
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["length_unknown"])
    #expect(abs(try #require(recording["format"]["duration"].double) - MediaClip.seconds) < 0.03)
    let cut = try server.client.uploadReady(Array(bytes.prefix(bytes.count / 2)), name: "cut.webm")
    #expect(cut["warnings"].array?.map { $0["code"].string } == ["truncated", "length_unknown"])
    #expect(try #require(cut["format"]["duration"].double) > 1)
    try server.stop()
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
    let job = try server.client.denoise(id, "{\(noise),\"format\":\"flac\"}")
    try server.client.succeed(try #require(job["id"].string))
    let cleaned = try server.client.recording(try #require(job["result"]["recording"].string))
    #expect(cleaned["format"]["frames"] == recording["format"]["frames"])
    let cleanedID = try #require(cleaned["id"].string)
    let beeps = try server.client.beeps(in: cleanedID, near: [1, 4])
    #expect(abs(beeps[0] - 1) < 0.001 && abs(beeps[1] - 4) < 0.001)
    for one in [id, cleanedID] { #expect(try server.client.delete("/v1/recordings/\(one)").status == 204) }
    #expect(try server.leftovers() == [])
    try server.stop()
  }

  @Test("a denoise job requested before there is a working copy makes its own")
  func early() throws {
    let server = try TestServer("--workers", "2")
    let path = try Self.sounds[0].0.make(in: server.folder)
    let uploaded = try server.client.upload(contents(path), name: "memo.m4a")
    let job = try server.client.denoise(try #require(uploaded["id"].string), #"{"format":"wav"}"#)
    try server.client.succeed(try #require(job["id"].string))
    let cleaned = try server.client.recording(try #require(job["result"]["recording"].string))
    try server.client.succeed(try #require(uploaded["waveform"]["job"].string))
    let source = try server.client.recording(try #require(uploaded["id"].string))
    #expect(cleaned["format"]["frames"] == source["format"]["frames"])
    try server.stop()
  }

  @Test("an accepted file survives a crash at any moment")
  func crash() throws {
    let server = try TestServer()
    let path = try Self.videos[0].0.make(in: server.folder)
    let uploaded = try server.client.upload(contents(path), name: "phone.mp4")
    try server.crash()
    try server.restart()
    let id = try #require(uploaded["id"].string)
    try server.client.succeed(try #require(uploaded["waveform"]["job"].string))
    try server.crash()
    try server.restart()
    #expect(try server.client.recording(id)["waveform"]["state"].string == "ready")
    #expect(abs(try server.client.beeps(in: id, near: [1])[0] - 1) < 0.001)
    // The original, the waveform, the working copy, the description, and nothing else.
    let files = try server.leftovers().filter { $0.hasPrefix("recordings/\(id)/") }
    #expect(files.count == 4, "\(files)")
    try server.stop()
  }

  /// Uploads a clip, waits for its waveform, and checks its facts.
  private func upload(_ clip: MediaClip, to server: TestServer) throws -> (recording: JSON, path: String) {
    let path = try clip.make(in: server.folder)
    let recording = try server.client.uploadReady(contents(path), name: clip.fileName)
    #expect(recording["format"]["container"].string == clip.container)
    #expect(recording["format"]["codec"].string == clip.codec)
    #expect(recording["format"]["sample_rate"].int == clip.rate)
    #expect(recording["warnings"].array?.isEmpty == true, "\(recording["warnings"])")
    #expect(recording["name"].string == clip.fileName)
    return (recording, path)
  }
}
