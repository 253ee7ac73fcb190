import Foundation
import Terms
import Testing
import Workers

@testable import Media

/// Parsing the output of ffprobe and ffmpeg, which a hostile file may influence.
struct MediaProbeTests {
  @Test("tracks, their codecs, and their lengths are read; a cover is not a video")
  func tracks() throws {
    let text = """
      {"streams":[
        {"codec_name":"mjpeg","codec_type":"video","width":600,"height":600,"disposition":{"attached_pic":1}},
        {"codec_name":"h264","codec_type":"video","width":64,"height":48,"disposition":{"attached_pic":0}},
        {"codec_name":"pcm_s16le","codec_type":"audio","start_time":"0.228000","duration":"3.021333"},
        {"codec_name":"opus","codec_type":"audio","tags":{"DURATION":"01:02:03.500000000","BPS":"96000"}}],
       "format":{"duration":"3.250000"}}
      """
    let tracks = try #require(TrackList(json: Array(text.utf8)))
    #expect(tracks.video == MediaFacts.Video(codec: "h264", width: 64, height: 48))
    #expect(tracks.audio.map(\.codec) == ["pcm_s16", "opus"])
    #expect(tracks.audio[0].start == 0.228 && tracks.audio[0].duration == 3.021333)
    #expect(tracks.audio.map(\.bitRate) == [nil, 96_000])
    #expect(tracks.audio[1].taggedEnd == 3723.5 && tracks.duration == 3.25)
  }

  @Test("pictures of unknown size count as pictures; a cover doesn't")
  func sizeless() throws {
    let sized = #"{"streams":[{"codec_name":"h264","codec_type":"video","width":0,"height":0}]}"#
    let tracks = try #require(TrackList(json: Array(sized.utf8)))
    #expect(tracks.pictures == "h264" && tracks.video == nil)
    let cover = #"{"streams":[{"codec_name":"png","codec_type":"video","disposition":{"attached_pic":1}}]}"#
    #expect(try #require(TrackList(json: Array(cover.utf8))).pictures == nil)
  }

  @Test("covers, sensors, and data are counted; time code and chapters are not data")
  func others() throws {
    let text = """
      {"streams":[
        {"index":0,"codec_name":"aac","codec_type":"audio","tags":{"language":"deu"}},
        {"index":1,"codec_name":"png","codec_type":"video","disposition":{"attached_pic":1}},
        {"index":2,"codec_name":"bmp","codec_type":"video","disposition":{"attached_pic":1}},
        {"index":3,"codec_name":"bin_data","codec_type":"data","codec_tag_string":"gpmd"},
        {"index":4,"codec_type":"data","codec_tag_string":"tmcd"},
        {"index":5,"codec_name":"bin_data","codec_type":"data","codec_tag_string":"text"},
        {"index":6,"codec_type":"data","codec_tag_string":"mebx"},
        {"index":7,"codec_type":"subtitle"}, {"index":8,"codec_type":"attachment"}],
       "chapters":[{"id":0}], "format":{"tags":{"com.apple.quicktime.make":"Apple"}}}
      """
    let others = try #require(TrackList(json: Array(text.utf8))).others
    #expect(others.covers == 2 && others.plainCovers == [1] && others.data == 2 && others.sensors == [3])
    #expect(others.subtitles == 1 && others.attachments == 1 && others.language == "deu" && others.hasLongKeys)
  }

  @Test("at most sixteen of thousands of tracks are passed to ffmpeg, and only three-letter languages")
  func manyTracks() throws {
    let tracks = (1...5000).map { #"{"index":\#($0),"codec_type":"data","codec_tag_string":"gpmd"}"# }
    let sound = #"{"index":0,"codec_type":"audio","tags":{"language":"-y /etc/passwd"}}"#
    let text = #"{"streams":[\#(([sound] + tracks).joined(separator: ","))]}"#
    let others = try #require(TrackList(json: Array(text.utf8))).others
    #expect(others.data == 5000 && others.sensors == Array(1...16) && others.language == nil)
  }

  @Test(
    "invalid output has no tracks",
    arguments: ["", "{", "[]", "{\"streams\":7}", "{\"streams\":[{\"width\":\"wide\"}]}"])
  func noTracks(_ text: String) {
    #expect(TrackList(json: Array(text.utf8)) == nil)
  }

  @Test("lengths that aren't finite numbers are unknown", arguments: ["N/A", "nan", "inf", "1e300", ""])
  func noLength(_ text: String) throws {
    let json = "{\"streams\":[{\"codec_type\":\"audio\",\"duration\":\"\(text)\"}]}"
    #expect(try #require(TrackList(json: Array(json.utf8))).audio.map(\.duration) == [nil])
  }

  @Test("sound begins with the first decoded frame, pictures with the earliest one shown")
  func packets() {
    let text = """
      #tb 0: 1/48000
      #sample_rate 0: 48000
      #tb 2: 1/12800
      2,      -1024,     -12800,      512,     2715, 0x16afdf1d, F=0x5
      2,       -512,       6400,      512,      165, 0x38985274, F=0x0
      0,      12000,      12000,     1024,     8192, 0x787778c5
      2,          0,       3200,      512,      123, 0xf3073786, F=0x0
      """
    let packets = PacketList(text: Array(text.utf8))
    #expect(packets.sampleRate == 48_000 && packets.channels == 2)
    #expect(packets.soundStart == 0.25 && packets.pictureStart == 0.25)
  }

  @Test("the bit rate is computed from the packets before the last one")
  func bitRate() {
    let lines = ["#tb 1: 1/1000", "1, 0, 0, 21, 1000, 0", "1, 21, 21, 21, 2000, 0", "1, 40, 40, 21, 9999, 0"]
    #expect(PacketList(text: Array(lines.joined(separator: "\n").utf8)).bitRate == 600_000)
    #expect(PacketList(text: Array(lines.prefix(2).joined(separator: "\n").utf8)).bitRate == nil)
  }

  @Test(
    "invalid lines are skipped",
    arguments: ["", "#tb 0: 1/0\n0, 0, 0, 1024, 4096, 0", "0, 0, 0, 0, 0, 0", "#tb 0: 1/1\n0, 0, 0, 0, 4096, 0", "a,b"])
  func noise(_ text: String) {
    #expect(PacketList(text: Array(text.utf8)).soundStart == nil)
  }

  @Test("the first sound is late if its time says so by more than a millisecond's rounding")
  func lateness() {
    for (first, late) in [(21, 1008), (1, nil)] as [(Int, Int64?)] {
      let lines = [first, 21, 43, 64, 85].map { "0, \($0), \($0), 1024, 8192, 0" }
      let text = (["#tb 0: 1/1000"] + lines).joined(separator: "\n")
      #expect(PacketList(text: Array(text.utf8)).lateness(sampleRate: 48_000) == late)
    }
  }

  /// Probes an empty file with programs that print these texts.
  private func facts(_ demuxer: Demuxer, sound tags: String = "", packets: [String]) throws -> MediaFacts {
    let folder = NSTemporaryDirectory() + "stillwave-probe-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let json =
      #"{"streams":[{"codec_name":"opus","codec_type":"audio"\#(tags)},"#
      + #"{"codec_name":"vp9","codec_type":"video","width":64,"height":48}]}"#
    let text = (["#tb 0: 1/1000", "#sample_rate 0: 48000", "#tb 2: 1/1000"] + packets).joined(separator: "\n")
    let script = "case $0 in *ffprobe) cat <<'E'\n\(json)\nE\n;; *) cat <<'E'\n\(text)\nE\n;; esac\n"
    try ScriptedProgram.write(script, as: ["ffmpeg", "ffprobe"], in: folder)
    try Data().write(to: URL(fileURLWithPath: "\(folder)/file"))
    return try MediaProbe(
      path: "\(folder)/file", demuxer: demuxer, with: try #require(FFmpeg("\(folder)/ffmpeg")), in: .none
    ).facts()
  }

  @Test(
    "a film starts at 0 on its clock, unless its tracks start much earlier, or all of them over a minute later",
    arguments: [(0, 0), (-20, 0), (-100, 0), (-200, -9600), (500, 0), (60_000, 0), (61_000, 61 * 48_000)])
  func zero(milliseconds: Int, firstFrame: Int64) throws {
    let packets = [0, 2].map { "\($0), 0, \(milliseconds), 1024, 8192, 0" }
    #expect(try facts(.matroska, packets: packets).firstFrame == firstFrame)
  }

  @Test("a track of Matroska ends when its tag says, or that long after its start if mkvmerge wrote it")
  func taggedEnd() throws {
    for (application, frames) in [("Lavf", 96_000), ("mkvmerge v9", 120_000)] as [(String, Int64)] {
      let tags = #","tags":{"DURATION":"00:00:02.000000000","_STATISTICS_WRITING_APP":"\#(application)"}"#
      let found = try facts(.matroska, sound: tags, packets: ["0, 0, 500, 1024, 8192, 0", "2, 0, 0, 1, 9, 0"])
      #expect(found.promisedFrames == frames && found.promisesLength)
    }
  }

  @Test("facts survive encoding and decoding")
  func json() {
    let facts = MediaFacts(
      demuxer: .mov, container: .mp4, codec: "aac", sampleRate: 48_000, channels: 2, firstFrame: -12,
      promisedFrames: 99,
      promisesLength: true, endsAsPromised: true, audioTracks: 1,
      video: MediaFacts.Video(codec: "h264", width: 1, height: 2))
    #expect(MediaFacts(json: facts.json) == facts)
    #expect(!facts.json.contains("others"))
    #expect(MediaFacts(json: "{}") == nil)
    #expect(MediaFacts(json: facts.json.replacing("48000", with: "0")) == nil)
  }

  @Test("a program that is missing or has no ffprobe next to it is not found")
  func program() {
    #expect(FFmpeg("/nonexistent/ffmpeg") == nil)
    #expect(FFmpeg("/proc/self/exe") == nil)
    #expect(FFmpeg("no-such-program-anywhere") == nil)
  }
}
