import Foundation
import Testing

/// A cleaned video has the same pictures with clean sound.
@Suite(.serialized) struct MediaDenoiseTests {
  private static func clip(_ name: String) throws -> (MediaClip, Double) {
    if name == "memo.m4a" { return (MediaUploadTests.memo, 0) }
    return try #require(MediaUploadTests.videos.first { $0.0.fileName == name })
  }

  /// The checksums of a file's picture packets, in order.
  private static func pictures(_ path: String) throws -> [String] {
    try ffmpegLines(["-i", path, "-map", "0:v", "-c", "copy", "-f", "framecrc", "-"]).filter { !$0.hasPrefix("#") }
      .map { $0.split(separator: ",").dropFirst(4).prefix(2).joined() }
  }

  private static let noise = MediaClip.cleaning

  @Test(
    "a film with three or four channels is cleaned like any other",
    arguments: [("film.mkv", "3.0", "libopus"), ("film.webm", "quad", "libopus"), ("film.mp4", "3.0", "aac")])
  func surround(_ name: String, layout: String, codec: String) throws {
    let server = try TestServer()
    let path = server.folder.file(name)
    let count = layout == "quad" ? 4 : 3
    let tones = (1...count).map { "0.\($0)*sin(2*PI*200*t)*gte(t\\,1)" }.joined(separator: "|")
    try Tool.ffmpeg.run([
      "-v", "error", "-f", "lavfi", "-i", "aevalsrc=\(tones):c=\(layout):s=48000:d=3", "-c:a", codec, path,
    ])
    let id = try #require(try server.client.uploadReady(contents(path), name: name)["id"].string)
    let cleaned = try #require(try server.client.cleaned(id)["id"].string)
    for channel in 0..<count {
      let slice = try server.client.get(
        "/v1/recordings/\(cleaned)/waveform?start=1.5&end=2.5&width=1&channels=\(channel)"
      ).json
      let peak = try #require(slice["data"].integers?.last)
      #expect(abs(Double(peak) / 32768 - Double(channel + 1) / 10) < 0.04, "channel \(channel): \(peak)")
    }
  }

  @Test(
    "the pictures are copied, and the clean sound is where it was", .secondTier,
    arguments: [
      ("phone.mp4", "aac"), ("phone.mov", "aac"), ("camera.mov", "pcm_s24"), ("fragmented.mp4", "aac"),
      ("browser.webm", "opus"), ("film.mkv", "opus"), ("film-aac.mkv", "aac"), ("varying-rate.mp4", "aac"),
      ("reordered.mp4", "aac"),
    ])
  func video(_ name: String, codec: String) throws {
    let server = try TestServer()
    let (clip, late) = try Self.clip(name)
    let path = try clip.make(in: server.folder)
    let source = try server.client.uploadReady(contents(path), name: name)
    let id = try #require(try server.client.cleaned(source)["id"].string)
    let cleaned = try server.client.recording(id)
    #expect(cleaned["format"]["container"] == source["format"]["container"])
    #expect(cleaned["format"]["codec"].string == codec)
    #expect(cleaned["format"]["frames"] == source["format"]["frames"])
    #expect(cleaned["video"] == source["video"])
    let answer = try server.client.get("/v1/recordings/\(id)/video")
    #expect(answer.status == 200)
    #expect(try server.client.get("/v1/recordings/\(id)/audio").body == answer.body)
    let out = server.folder.file("cleaned-\(name)")
    try write(answer.body, to: out)

    #expect(try Self.pictures(out) == Self.pictures(path))
    let (before, after) = (try flashes(in: path), try flashes(in: out))
    #expect(before.count == after.count)
    for (one, other) in zip(before, after) { #expect(abs(one - other) < 0.001, "\(one) \(other)") }
    // The cleaned waveform, and the file as others read it.
    let again = try server.client.uploadReady(answer.body, name: name)
    #expect(again["warnings"].array?.isEmpty == true)
    for recording in [id, try #require(again["id"].string)] {
      for (flash, beep) in zip(before, try server.client.beeps(in: recording, near: before)) {
        #expect(abs(beep - flash - late) < 0.0012, "\(flash) \(beep)")
      }
    }
    let lengths = [source, again].compactMap { $0["format"]["duration"].double }
    #expect(abs(lengths[0] - lengths[1]) < (clip.container == "mkv" ? 0.02 : 0.0011), "\(lengths)")
    if ["mp4", "mov"].contains(clip.container) {
      let data = Data(answer.body)
      let (index, samples) = (data.range(of: Data("moov".utf8)), data.range(of: Data("mdat".utf8)))
      #expect(try #require(index).lowerBound < (try #require(samples).lowerBound))
    }
  }

  @Test("the new sound has the old one's bit depth, which an mkv doesn't state")
  func bits() throws {
    let server = try TestServer()
    let source = "anoisesrc=d=5:a=0.3:r=48000:seed=1"
    let noise = ["-v", "error", "-f", "lavfi", "-i", source, "-c:a", "aac", "-b:a", "320k"]
    let path = server.folder.file("loud.mkv")
    try Tool.ffmpeg.run(noise + [path])
    let loud = try server.client.uploadReady(contents(path), name: "loud.mkv")
    let id = try #require(
      try server.client.cleaned(loud, #"{"noise":{"start":0.1,"end":0.8},"output":"residue"}"#)["id"].string)
    let answer = try server.client.get("/v1/recordings/\(id)/audio")
    let before = try contents(path).count
    #expect(answer.body.count > before * 9 / 10, "\(answer.body.count) of \(before)")
  }

  @Test("run by hand, too, a video becomes the same video with clean sound")
  func command() throws {
    let folder = try TemporaryFolder()
    let path = try Self.clip("phone.mp4").0.make(in: folder)
    let out = folder.file("clean.mp4")
    let finished = try Command.stillwave("denoise", path, "-o", out, "--noise", "quantile:0.2", "--reduction", "0")
    #expect(finished.status == 0, "\(finished.errors)")
    #expect(try Self.pictures(out) == Self.pictures(path))
    #expect(try folder.names() == ["clean.mp4", "phone.mp4"])
  }

  @Test("run by hand, too, memos and videos can be drawn, overlaid, and searched for noise")
  func drawing() throws {
    let folder = try TemporaryFolder()
    let paths = try ["phone.mov", "memo.m4a"].map { try Self.clip($0).0.make(in: folder) }
    let picture = folder.file("both.png")
    let names = try folder.names()
    for (path, overlay) in [(paths[0], paths[1]), (paths[1], paths[0])] {
      let drawn = try Command.stillwave(
        "waveform", path, "-o", picture, "--overlay", overlay, "--start", "0.99", "--end", "1.01")
      #expect(drawn.status == 0, "\(drawn.errors)")
      #expect(try contents(picture).starts(with: [0x89] + Array("PNG".utf8)))
      let regions = try Command.stillwave("noise-regions", path)
      #expect(regions.status == 0, "\(regions.errors)")
      try FileManager.default.removeItem(atPath: picture)
    }
    #expect(try folder.names() == names)
  }
}
