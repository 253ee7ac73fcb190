import Foundation
import Testing

/// Everything else in a phone's or camera's file, besides sound and pictures, is there after cleaning, or a warning
/// says what's missing.
@Suite(.serialized) struct MediaTracksTests {
  private let server: TestServer
  /// A video without anything else.
  private let plain: String

  init() throws {
    server = try TestServer()
    plain = try MediaUploadTests.videos[0].0.make(in: server.folder)
  }

  /// Returns ffprobe's output about a file, in its compact form.
  private func told(_ path: String, _ entries: String) throws -> [String] {
    let finished = try Command(
      "/usr/bin/env", ["ffprobe", "-v", "error", "-show_entries", entries, "-of", "compact", path]
    ).finish()
    return finished.lines.filter { !$0.isEmpty }
  }

  private func make(_ name: String, _ words: [String]) throws -> String {
    let path = server.folder.file(name)
    try Tool.ffmpeg.run(["-v", "error", "-y"] + words + [path])
    return path
  }

  private func cover() throws -> String {
    try make("cover.jpg", ["-f", "lavfi", "-i", "color=red:s=300x200:d=1", "-frames:v", "1"])
  }

  /// Cleans a file; returns the new recording and its file.
  private func clean(_ path: String, _ name: String) throws -> (recording: JSON, path: String) {
    let source = try server.client.uploadReady(contents(path), name: name)
    let id = try #require(try server.client.cleaned(source)["id"].string)
    let out = server.folder.file("cleaned-\(name)")
    try write(try server.client.get("/v1/recordings/\(id)/audio").body, to: out)
    return (try server.client.recording(id), out)
  }

  private func packets(_ path: String, _ track: String) throws -> [String] {
    try ffmpegLines(["-i", path, "-map", track, "-c", "copy", "-f", "framecrc", "-"]).filter { !$0.hasPrefix("#") }
      .map { String($0.split(separator: " ").last ?? "") }
  }

  @Test(
    "a song keeps its cover",
    arguments: [("song.m4a", ["-map", "0:a"]), ("film.mp4", ["-map", "0:v", "-map", "0:a"])])
  func cover(_ name: String, tracks: [String]) throws {
    let words = ["-i", plain, "-i", try cover()] + tracks + ["-map", "1:v", "-c", "copy"]
    let position = name == "song.m4a" ? 0 : 1
    let path = try make(name, words + ["-disposition:v:\(position)", "attached_pic", "-metadata", "title=Rain"])
    let (recording, out) = try clean(path, name)
    #expect(recording["warnings"] == .array([]))
    #expect(try packets(out, "0:v:\(position)") == packets(path, "0:v:\(position)"))
    #expect(try told(out, "stream_disposition=attached_pic").contains("stream|disposition:attached_pic=1"))
    #expect(try told(out, "format_tags=title") == ["format|tag:title=Rain"])
    #expect(
      recording["video"]
        == (name == "song.m4a"
          ? .null : .object(["codec": .string("h264"), "width": .number(64), "height": .number(48)])))
  }

  @Test("a phone's video keeps its rotation, time, place, and camera")
  func phone() throws {
    let path = try make(
      "phone.mov",
      [
        "-i", plain, "-c", "copy", "-metadata:s:v", "rotate=90", "-movflags",
        "use_metadata_tags", "-metadata", "com.apple.quicktime.make=Apple", "-metadata",
        "com.apple.quicktime.location.ISO6709=+48.1+011.5/", "-metadata", "creation_time=2024-03-01T10:11:12Z",
        "-timecode", "01:02:03:04",
      ])
    let (recording, out) = try clean(path, "phone.mov")
    #expect(recording["warnings"] == .array([]))
    for entries in [
      "stream_side_data=rotation", "stream_tags=timecode", "stream_tags=creation_time",
      "format_tags=com.apple.quicktime.make,com.apple.quicktime.location.ISO6709,creation_time",
    ] {
      let (before, after) = (try told(path, entries), try told(out, entries))
      #expect(before.sorted() == after.sorted() && !after.joined().isEmpty, "\(entries)")
    }
  }

  @Test("an old camera's video keeps its title, its place and its chapters")
  func camera() throws {
    let chapters = server.folder.file("chapters.txt")
    try write(
      Array(";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=2000\ntitle=One\n".utf8)
        + Array("[CHAPTER]\nTIMEBASE=1/1000\nSTART=2000\nEND=5000\ntitle=Two\n".utf8), to: chapters)
    let path = try make(
      "camera.mp4",
      [
        "-i", plain, "-i", chapters, "-map", "0", "-map_chapters", "1", "-c", "copy", "-metadata", "title=Rain",
        "-metadata", "location=+48.1+011.5/", "-metadata", "creation_time=2024-03-01T10:11:12Z",
        "-metadata:s:a", "language=deu",
      ])
    let (recording, out) = try clean(path, "camera.mp4")
    #expect(recording["warnings"] == .array([]))
    for entries in ["chapter=start,end:chapter_tags=title", "format_tags=title,location,creation_time"] {
      let after = try told(out, entries)
      #expect(try told(path, entries) == after && !after.joined().isEmpty, "\(entries)")
    }
    #expect(try told(out, "stream_tags=language").contains("stream|tag:language=deu"))
  }

  /// Turns the second video track into a data track by overwriting its handler and codec name.
  private func sensors(_ tag: String, _ name: String) throws -> String {
    let path = try make(
      name,
      [
        "-i", plain, "-f", "lavfi", "-i", "color=red:s=64x48:r=25:d=5", "-map", "0:v", "-map", "0:a", "-map", "1",
        "-c", "copy", "-c:v:1", "mpeg4", "-timecode", "01:02:03:04",
      ])
    var data = Data(try contents(path))
    let codec = try #require(data.range(of: Data("mp4v".utf8), options: .backwards))
    let handler = try #require(data.range(of: Data("vide".utf8), options: .backwards, in: 0..<codec.lowerBound))
    data.replaceSubrange(codec, with: Data(tag.utf8))
    data.replaceSubrange(handler, with: Data("meta".utf8))
    try write(Array(data), to: path)
    return path
  }

  @Test("a GoPro's sensor data and time code are kept")
  func sensorsKept() throws {
    let path = try sensors("gpmd", "gopro.mp4")
    let (recording, out) = try clean(path, "gopro.mp4")
    #expect(recording["warnings"] == .array([]))
    #expect(try packets(out, "0:2") == packets(path, "0:2"))
    #expect(try told(out, "stream=codec_tag_string").contains("stream|codec_tag_string=tmcd"))
  }

  @Test("data that can't be written is omitted with a warning")
  func sensorsLost() throws {
    let path = try sensors("mebx", "phone.mov")
    let (recording, out) = try clean(path, "phone.mov")
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["tracks_left_out"])
    #expect(recording["warnings"][0]["detail"].string?.contains("1 track of data") == true)
    #expect(try packets(out, "0:v:0") == packets(path, "0:v:0"))
  }

  @Test("a Matroska film keeps attachments, subtitles, and chapters, but not a cover")
  func matroska() throws {
    let texts = server.folder.file("texts.srt")
    try write(Array("1\n00:00:01,000 --> 00:00:02,000\nHello\n".utf8), to: texts)
    let path = try make(
      "film.mkv",
      [
        "-i", plain, "-i", texts, "-map", "0", "-map", "1", "-c", "copy", "-attach", texts, "-metadata:s:t:0",
        "mimetype=text/plain", "-attach", try cover(), "-metadata:s:t:1", "mimetype=image/jpeg",
      ])
    let (recording, out) = try clean(path, "film.mkv")
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["tracks_left_out"])
    #expect(recording["warnings"][0]["detail"].string?.contains("1 cover") == true)
    #expect(
      try told(out, "stream=codec_type").sorted()
        == ["attachment", "audio", "subtitle", "video"].map { "stream|codec_type=\($0)" })
    #expect(try told(out, "stream_tags=filename").contains("stream|tag:filename=texts.srt"))
  }

  @Test("a track that the container can't hold doesn't fail the job")
  func refused() throws {
    // Renames subtitles in the file to a kind that an mp4 can't hold.
    let texts = server.folder.file("texts.srt")
    try write(Array("1\n00:00:01,000 --> 00:00:02,000\nHello\n".utf8), to: texts)
    let path = try make(
      "texts.mp4", ["-i", plain, "-i", texts, "-map", "0", "-map", "1", "-c", "copy", "-c:s", "mov_text"])
    var data = Data(try contents(path))
    data.replaceSubrange(try #require(data.range(of: Data("tx3g".utf8), options: .backwards)), with: Data("c608".utf8))
    try write(Array(data), to: path)
    let (recording, out) = try clean(path, "texts.mp4")
    #expect(recording["warnings"].array?.map { $0["code"].string } == ["tracks_left_out"])
    #expect(try packets(out, "0:v:0") == packets(path, "0:v:0"))
  }
}
