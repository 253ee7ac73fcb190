import Foundation
import Testing

/// Lyrics, chapters and subtitles inside uploaded files become tracks. The files are made by ffmpeg, mkvmerge and LAME;
/// `LabelsTests` has those that no program at hand writes.
@Suite(.serialized) struct EmbeddedLabelTests {
  private let server: TestServer
  private let folder: TemporaryFolder
  private static let sine = ["-f", "lavfi", "-i", "sine=440:d=5"]

  private static let srt =
    "1\n00:00:00,500 --> 00:00:01,500\n<i>Hello</i> I <3 you & me\n\n2\n"
    + "00:00:01,000 --> 00:00:03,000\ntwo\nlines\n"
  private static let vtt =
    "WEBVTT\n\nid1\n00:00:00.500 --> 00:00:01.500 align:start\n"
    + "<v Ann>Hello <00:00:01.000>world &amp; all\n\n00:00:02.000 --> 00:00:03.000\nend\n"
  private static let metadata =
    ";FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=2000\ntitle=One\n"
    + "[CHAPTER]\nTIMEBASE=1/1000\nSTART=2000\nEND=5000\ntitle=Zwei ü\n"
  private static let ass = """
    [Script Info]
    ScriptType: v4.00+

    [V4+ Styles]
    Format: Name, Fontname, Fontsize, PrimaryColour
    Style: Default,Arial,20,&H00FFFFFF

    [Events]
    Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
    Dialogue: 0,0:00:00.50,0:00:01.50,Default,Bo,0,0,0,,{\\k50}Hel{\\k30}lo {\\k20}you, all
    Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,two\\Nlines

    """

  private static let chapters = [label(0, 2, "One"), label(2, 5, "Zwei ü")]
  private static let subtitles = [label(0.5, 1.5, "Hello I <3 you & me"), label(1, 3, "two\nlines")]

  private static func label(_ start: Double, _ end: Double, _ text: String) -> String { "\(start)–\(end) \(text)" }

  init() throws {
    server = try TestServer()
    folder = try TemporaryFolder()
    for (name, text) in [("a.srt", Self.srt), ("a.vtt", Self.vtt), ("a.ass", Self.ass), ("ch.txt", Self.metadata)] {
      try write(Array(text.utf8), to: folder.file(name))
    }
  }

  private func ffmpeg(_ name: String, _ words: [String]) throws -> String {
    let path = folder.file(name)
    let files = words.map { $0.hasPrefix("@") ? folder.file(String($0.dropFirst())) : $0 }
    try Tool.ffmpeg.run(["-v", "error", "-y"] + files + [path])
    return path
  }

  /// Uploads a file; returns its recording and tracks.
  private func upload(_ path: String) throws -> (recording: JSON, tracks: [JSON]) {
    let made = try server.client.uploadReady(contents(path), name: "clip")
    let id = try #require(made["id"].string)
    return (made, try tracks(of: id))
  }

  private func tracks(of id: String) throws -> [JSON] {
    try #require(try server.client.get("/v1/recordings/\(id)/labels").json["tracks"].array)
  }

  /// Returns the labels of a track, and the words of the first.
  private func labels(_ track: JSON, of recording: JSON) throws -> (labels: [String], words: [String]) {
    let path = "/v1/recordings/\(recording["id"].string ?? "")/labels/\(track["id"].string ?? "")"
    let found = try #require(try server.client.get(path).json["labels"].array)
    func text(_ label: JSON) -> String {
      // In Matroska, ffmpeg moves some tracks by an encoder's delay of up to 7 ms.
      func rounded(_ name: String) -> Double { ((label[name].double ?? -1) * 50).rounded() / 50 }
      return Self.label(rounded("start"), rounded("end"), label["text"].string ?? "")
    }
    return (found.map(text), (found.first?["words"].array ?? []).map(text))
  }

  @Test("chapters of each container", .secondTier, arguments: ["mp4", "m4a", "mkv", "opus", "mp3", "mov", "webm"])
  func chapters(ending: String) throws {
    let codec: [String] = ["webm": ["-c:a", "libopus"], "mp3": ["-c:a", "libmp3lame"]][ending] ?? []
    let path = try ffmpeg(
      "clip.\(ending)", Self.sine + ["-i", "@ch.txt", "-map", "0", "-map_chapters", "1"] + codec)
    let (recording, tracks) = try upload(path)
    try #require(tracks.count == 1, "\(tracks)")
    #expect(tracks[0]["kind"].string == "chapters" && tracks[0]["name"].string == "Chapters")
    #expect(tracks[0]["source"].string == "embedded" && tracks[0]["inherited"] == .bool(false))
    // The last chapter of a comment has no end of its own.
    let found = try labels(tracks[0], of: recording).labels
    #expect(found[0] == Self.chapters[0])
    #expect(
      found.count == 2 && found[1].hasPrefix("2.0–5.") && found[1].hasSuffix("Zwei ü") || found[1] == Self.chapters[1])
    #expect(recording["warnings"] == .array([]))
  }

  @Test("chapters that mkvmerge wrote without ends last until the next")
  func openChapters() throws {
    let simple = "CHAPTER01=00:00:00.000\nCHAPTER01NAME=Intro\nCHAPTER02=00:00:02.500\nCHAPTER02NAME=Rest\n"
    try write(Array(simple.utf8), to: folder.file("simple.txt"))
    let sound = try ffmpeg("sound.mka", Self.sine)
    let path = folder.file("clip.mka")
    try Tool.mkvmerge.run(["-q", "-o", path, "--chapters", folder.file("simple.txt"), sound])
    let (recording, tracks) = try upload(path)
    #expect(try labels(try #require(tracks.first), of: recording).labels.first == Self.label(0, 2.5, "Intro"))
  }

  @Test("subtitles of an MP4, MOV and M4A, with a chapter track beside them", arguments: ["mp4", "mov", "m4a"])
  func movText(ending: String) throws {
    let path = try ffmpeg(
      "clip.\(ending)",
      Self.sine + ["-i", "@a.srt", "-i", "@ch.txt", "-map", "0", "-map", "1", "-map", "1", "-map_chapters", "2"]
        + ["-c:s", "mov_text", "-metadata:s:s:0", "language=eng", "-f", ending == "m4a" ? "mp4" : ending])
    let (recording, tracks) = try upload(path)
    #expect(tracks.map { $0["kind"].string } == ["chapters", "transcript", "transcript"])
    #expect(tracks.map { $0["language"].string } == [nil, "eng", nil])
    #expect(try labels(tracks[0], of: recording).labels == Self.chapters)
    // In these files, a subtitle ends when the next one begins.
    let subtitles = [Self.label(0.5, 1, "Hello I <3 you & me"), Self.subtitles[1]]
    #expect(try labels(tracks[1], of: recording).labels == subtitles)
    #expect(try labels(tracks[2], of: recording).labels == subtitles)
  }

  @Test("SubRip, SubStation Alpha and WebVTT in Matroska, by ffmpeg and mkvmerge", arguments: [true, false])
  func matroska(isByMkvmerge: Bool) throws {
    let first = try ffmpeg(
      "first.mkv",
      Self.sine + ["-i", "@a.srt", "-i", "@a.ass", "-map", "0", "-map", "1", "-map", "2", "-c:s", "copy"]
        + ["-metadata:s:s:0", "language=eng", "-metadata:s:s:0", "title=For all"])
    var path = first
    if isByMkvmerge {
      path = folder.file("second.mkv")
      try Tool.mkvmerge.run([
        "-q", "-o", path, first, "--language", "0:de", "--track-name", "0:Voices", folder.file("a.vtt"),
      ])
    }
    let (recording, tracks) = try upload(path)
    #expect(
      tracks.map { $0["name"].string } == ["For all", "Subtitles"] + (isByMkvmerge ? ["Voices"] : []), "\(tracks)")
    #expect(tracks.allSatisfy { $0["kind"].string == "transcript" })
    #expect(try labels(tracks[0], of: recording).labels == Self.subtitles)
    let karaoke = try labels(tracks[1], of: recording)
    #expect(karaoke.labels == [Self.label(0.5, 1.5, "Hello you, all"), Self.label(2, 3, "two\nlines")])
    #expect(
      karaoke.words == [Self.label(0.5, 1, "Hel"), Self.label(1, 1.3, "lo"), Self.label(1.3, 1.5, "you, all")])
    if isByMkvmerge {
      #expect(tracks.map { $0["language"].string } == ["en", nil, "de"])
      let voices = try labels(tracks[2], of: recording)
      #expect(voices.labels == [Self.label(0.5, 1.5, "Hello world & all"), Self.label(2, 3, "end")])
      #expect(voices.words == [Self.label(0.5, 1, "Hello"), Self.label(1, 1.5, "world & all")])
    }
  }

  @Test("lyrics in tags", arguments: ["mp3", "flac", "ogg", "opus", "m4a", "wav"])
  func lyrics(ending: String) throws {
    let path = folder.file("clip.\(ending)")
    let text = "[00:01.00]One\n[00:02.50]two <3"
    switch ending {
    case "mp3":
      let (plain, sound) = (try ffmpeg("plain.wav", Self.sine), folder.file("sound.mp3"))
      try Tool.lame.run(["--quiet", "--noreplaygain", plain, sound])
      try write(Self.tag(lyrics: text) + contents(sound), to: path)
    case "wav":
      let tag = Self.tag(lyrics: text)
      let size = (0..<4).map { UInt8(tag.count >> (8 * $0) & 0xFF) }
      try write(contents(try ffmpeg("plain.wav", Self.sine)) + Array("id3 ".utf8) + size + tag, to: path)
    default: _ = try ffmpeg("clip.\(ending)", Self.sine + ["-metadata", "LYRICS=\(text)"])
    }
    try check(lyricsOf: path)
  }

  /// Returns an ID3v2.3 tag with a frame USLT, which none of the programs writes.
  private static func tag(lyrics: String) -> [UInt8] {
    // An even length, as chunks have.
    let content = [3] + Array("eng".utf8) + [0] + Array(lyrics.utf8) + (lyrics.utf8.count % 2 == 0 ? [0] : [])
    func bytes(_ number: Int, bits: Int) -> [UInt8] {
      (0..<4).reversed().map { UInt8(number >> (bits * $0) & (1 << bits - 1)) }
    }
    let frame = Array("USLT".utf8) + bytes(content.count, bits: 8) + [0, 0] + content
    return Array("ID3".utf8) + [3, 0, 0] + bytes(frame.count, bits: 7) + frame
  }

  private func check(lyricsOf path: String) throws {
    let (recording, tracks) = try upload(path)
    try #require(tracks.count == 1, "\(tracks)")
    #expect(tracks[0]["kind"].string == "lyrics" && tracks[0]["source"].string == "embedded")
    #expect(
      try labels(tracks[0], of: recording).labels.map { $0.suffix(5) } == ["5 One", "wo <3"].map { $0.suffix(5) })
    #expect(recording["warnings"] == .array([]), "\(recording["warnings"])")
  }

  @Test("a cleaned film keeps its own chapters and subtitles and shows its source's tracks")
  func cleaned() throws {
    let path = try ffmpeg(
      "film.mp4",
      ["-f", "lavfi", "-i", "color=red:s=64x48:r=25:d=5"] + Self.sine + ["-i", "@a.srt", "-i", "@ch.txt"]
        + ["-map", "0", "-map", "1", "-map", "2", "-map_chapters", "3", "-c:s", "mov_text"] + MediaClip.h264)
    let (source, tracks) = try upload(path)
    #expect(tracks.count == 2)
    let id = try #require(try server.client.cleaned(source)["id"].string)
    let inherited = try self.tracks(of: id)
    #expect(inherited.map { $0["id"].string } == tracks.map { $0["id"].string })
    #expect(inherited.allSatisfy { $0["inherited"] == .bool(true) })
    let out = folder.file("cleaned.mp4")
    try write(try server.client.get("/v1/recordings/\(id)/audio").body, to: out)
    for file in [path, out] {
      #expect(
        try ffmpegLines(["-i", file, "-map", "0:s:0", "-f", "srt", "-"]).joined(separator: "\n").contains("two"))
      let told = try Command(
        "/usr/bin/env", ["ffprobe", "-v", "error", "-show_entries", "chapter_tags=title", "-of", "csv", file]
      ).finish()
      #expect(told.lines.filter { !$0.isEmpty } == ["chapter,One", "chapter,Zwei ü"])
    }
  }
}
