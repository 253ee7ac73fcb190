// What is asked of a file, in two runs that go on at the same time. `ffprobe` reads the headers and decodes nothing:
// tracks, sizes, lengths. `ffmpeg` writes, as its "framecrc" does, a line for each of the first packets:
//
//   #sample_rate 0: 48000                       of stream 0, the sound as it is decoded
//   #tb 0: 1/48000                              the unit of its times
//   0,      -1024,          0,     1024,     4096, 0x787778c5
//   stream, decoding time, time, frames, bytes, checksum, flags unless it is a plain key frame: F=0x4, not to be shown
//
// Stream 1 is the same sound as it is coded, stream 2 the pictures.
//
// So where sound begins is taken from what comes out of the decoder: an encoder's delay and edit lists have been dealt
// with by then, which no header alone tells.

import FoundationEssentials
import Glibc

/// A look at a file, from its start, which comes before this process fences itself in, to its facts, which come after.
public struct MediaProbe {
  private let container: MediaContainer
  private let demuxer: Demuxer
  private let path: String
  private let headers: FencedRun
  private let packets: FencedRun

  /// Starts to look at the file at `path`. Throws `.system` where a program can't be started.
  public init(path: String, demuxer: Demuxer, with ffmpeg: FFmpeg, in fencing: Fencing) throws(MediaError) {
    self.demuxer = demuxer
    self.path = path
    container = MediaContainer(demuxer, path: path)
    headers = try FencedRun(Self.headerWords(demuxer, ffmpeg), reading: path, in: fencing)
    // Matroska tells no bit rate: a second of packets does.
    let coded = demuxer == .matroska ? "64" : "1"
    let first = [
      "-map", "0:a:0", "-c:0", "pcm_f32le", "-map", "0:a:0", "-c:1", "copy", "-map", "0:V:0?", "-c:2", "copy",
      "-frames:a:0", "8", "-frames:a:1", coded, "-frames:v", "16",
    ]
    packets = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + ["-copyts"] + ffmpeg.inputWords(demuxer) + first
        + ["-f", "framecrc", "pipe:1"], reading: path, in: fencing)
  }

  /// ffprobe opens a decoder for every track; without looking for stream information it gives them nothing to decode.
  private static func headerWords(_ demuxer: Demuxer, _ ffmpeg: FFmpeg) -> [String] {
    let shown =
      "stream=index,codec_name,codec_type,codec_tag_string,width,height,start_time,duration,bit_rate"
      + ":stream_disposition=attached_pic:stream_tags=DURATION,BPS,language:format=duration"
      + ":format_tags=com.apple.quicktime.make,com.apple.quicktime.creationdate:chapter=id"
    var words = ["-v", "quiet", "-show_entries", shown, "-of", "json", "-protocol_whitelist", "file,pipe"]
    if demuxer.hasTimeline || demuxer == .ogg { words.append("-nofind_stream_info") }
    return [ffmpeg.probePath] + words + ["-f", demuxer.rawValue, FencedRun.inputName]
  }

  private static let outputLimit = 1 << 20

  /// What the file holds. Throws `.noAudio` where there is no sound, `.undecodable` where none of it can be decoded,
  /// and `.programFailed` if it is not the file's fault, or may not be.
  public func facts() throws(MediaError) -> MediaFacts {
    let tracks = TrackList(json: headers.text(upTo: Self.outputLimit))
    let start = PacketList(text: packets.text(upTo: Self.outputLimit))
    // ffmpeg, which catches SIGXCPU, is killed a second later; ffprobe does the same work and is not.
    if headers.end() == SIGXCPU || packets.end() == SIGXCPU { throw .tooSlow }
    if let failure = headers.failure ?? packets.failure { throw .programFailed(failure) }
    guard let tracks, !tracks.streams.isEmpty else { throw .undecodable(container, codec: nil) }
    guard let audio = tracks.audio.first else { throw .noAudio(container) }
    guard let sampleRate = start.sampleRate, sampleRate > 0, let channels = start.channels, let sound = start.soundStart
    else { throw .undecodable(container, codec: audio.codec) }
    let rate = Double(sampleRate)
    let zero = zero(sound: sound, picture: start.pictureStart, isAlone: tracks.video == nil)
    let telephone = demuxer == .amr ? AMRExtent(path: path) : nil
    let boxes = demuxer == .mov ? BoxExtent(path: path) : nil
    let isFragmented = boxes?.isFragmented == true
    let end =
      telephone.map { Double($0.frames) * AMRExtent.frameSeconds * rate }
      ?? Self.end(of: audio, from: min(sound, 0), in: tracks).map { ($0 - (zero ?? 0)) * rate }
    return MediaFacts(
      demuxer: demuxer, container: container, codec: audio.codec, sampleRate: sampleRate, channels: channels,
      layout: [3, 4].contains(channels) ? start.layout : nil,
      firstFrame: zero.map { Int64(($0 * rate).rounded()) }, bitRate: audio.bitRate ?? start.bitRate,
      promisedFrames: end.flatMap { $0 >= 1 && $0 < 0x1p62 ? Int64($0.rounded()) : nil },
      promisesLength: audio.taggedEnd != nil || demuxer == .mov && !isFragmented || telephone != nil,
      endsAsPromised: demuxer == .mov && !isFragmented || telephone != nil,
      audioTracks: tracks.audio.count, video: tracks.video,
      isCut: telephone?.isCut ?? isCut(boxes),
      lacksLength: demuxer == .matroska ? audio.taggedEnd == nil && tracks.duration == nil : nil,
      silentSeconds: telephone.map { Double($0.silentFrames) * AMRExtent.frameSeconds }, others: tracks.others)
  }

  /// Whether the file's own sizes show that its end is missing; nil where it has none.
  private func isCut(_ boxes: BoxExtent?) -> Bool? {
    demuxer == .matroska ? MatroskaExtent(path: path) == .cut : boxes.map { $0.verdict == .cut }
  }

  /// The second of the file's clock that is 0 here. Sound without pictures begins with what is decoded first: an edit
  /// list, a note of the encoder's delay (iTunSMPB), a gap in front are no part of it, in ffmpeg as in browsers. Beside
  /// pictures players begin at 0 even where the first track begins later. What is
  /// less than a tenth of a second before 0 is an encoder's delay, or a container's rounding; what is more is kept, but
  /// in MP4, where an edit list has put before 0 what is not to be shown or heard. A clock that goes on from somewhere
  /// else, as in a piece of a broadcast, begins with what there is.
  ///
  /// nil where there is no such clock, and all that is decoded is sound. An AMR file has one in that each of its frames
  /// has its time, also those that ffmpeg can't decode.
  private func zero(sound: Double, picture: Double?, isAlone: Bool) -> Double? {
    guard demuxer.hasTimeline || demuxer == .ogg && !isAlone && sound < 0 else { return demuxer == .amr ? 0 : nil }
    if isAlone { return sound }
    let first = min(sound, picture ?? sound)
    if first > 60 { return first }
    return first < -0.1 && demuxer != .mov ? first : 0
  }

  private static func end(of audio: TrackList.Stream, from start: Double, in tracks: TrackList) -> Double? {
    if let duration = audio.duration { return (audio.start ?? start) + duration }
    return audio.taggedEnd ?? tracks.duration
  }
}

/// What ffprobe says of a file's tracks.
struct TrackList {
  struct Stream {
    var codec: String
    var start: Double?
    var duration: Double?
    var bitRate: Int?
    /// Matroska's tag for the end of a track.
    var taggedEnd: Double?
  }

  private(set) var streams: [Answer.Stream] = []
  private(set) var duration: Double?
  private var hasChapters = false
  private var hasLongKeys = false

  struct Answer: Decodable {
    struct Stream: Decodable {
      struct Disposition: Decodable { var attached_pic: Int? }
      struct Tags: Decodable { var DURATION, BPS, language: String? }
      var codec_name, codec_type, codec_tag_string, start_time, duration, bit_rate: String?
      var index, width, height: Int?
      var disposition: Disposition?
      var tags: Tags?
    }

    struct Format: Decodable {
      var duration: String?
      var tags: [String: String]?
    }
    struct Chapter: Decodable {}
    var streams: [Stream]?
    var format: Format?
    var chapters: [Chapter]?
  }

  /// nil where it is no answer of ffprobe's.
  init?(json: [UInt8]) {
    guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(json)) else { return nil }
    streams = answer.streams ?? []
    duration = answer.format?.duration.flatMap(Self.seconds)
    hasChapters = answer.chapters?.isEmpty == false
    hasLongKeys = answer.format?.tags?.isEmpty == false
  }

  var audio: [Stream] {
    streams.filter { $0.codec_type == "audio" }.map { stream in
      Stream(
        codec: Self.name(stream.codec_name), start: stream.start_time.flatMap(Self.seconds),
        duration: stream.duration.flatMap(Self.seconds),
        bitRate: (stream.bit_rate ?? stream.tags?.BPS).flatMap { Int($0) }.flatMap {
          (1...100_000_000).contains($0) ? $0 : nil
        },
        taggedEnd: stream.tags?.DURATION.flatMap(Self.clock))
    }
  }

  /// A cover is no video.
  var video: MediaFacts.Video? {
    let pictures = streams.first { $0.codec_type == "video" && $0.disposition?.attached_pic != 1 }
    guard let pictures, let width = pictures.width, let height = pictures.height, width > 0, height > 0 else {
      return nil
    }
    return MediaFacts.Video(codec: Self.name(pictures.codec_name), width: width, height: height)
  }

  var others: MediaFacts.OtherTracks {
    var others = MediaFacts.OtherTracks()
    for stream in streams {
      switch stream.codec_type {
      case "subtitle": others.subtitles += 1
      case "attachment": others.attachments += 1
      case "video" where stream.disposition?.attached_pic == 1:
        others.covers += 1
        if let index = stream.index, ["mjpeg", "png"].contains(stream.codec_name) { others.plainCovers.append(index) }
      case "data" where stream.codec_tag_string != "tmcd" && !(stream.codec_tag_string == "text" && hasChapters):
        others.data += 1
        if let index = stream.index, stream.codec_tag_string == "gpmd" { others.sensors.append(index) }
      default: break
      }
    }
    // Each of them is named on a command line.
    others.plainCovers = Array(others.plainCovers.prefix(Self.namedLimit))
    others.sensors = Array(others.sensors.prefix(Self.namedLimit))
    let language = streams.first { $0.codec_type == "audio" }?.tags?.language
    others.language = language.flatMap {
      $0.utf8.count == 3 && $0.utf8.allSatisfy { (97...122).contains($0) } ? $0 : nil
    }
    others.hasLongKeys = hasLongKeys
    return others
  }

  private static let namedLimit = 16

  /// Without the order of bytes, as the API names it.
  private static func name(_ codec: String?) -> String {
    guard let codec else { return "unknown" }
    let plain = codec.hasPrefix("pcm_") && (codec.hasSuffix("le") || codec.hasSuffix("be"))
    return plain ? String(codec.dropLast(2)) : codec
  }

  private static func seconds(_ text: String) -> Double? {
    Double(text).flatMap { $0.isFinite && $0.magnitude < 1e12 ? $0 : nil }
  }

  /// "00:00:03.308000000"
  private static func clock(_ text: String) -> Double? {
    let parts = text.split(separator: ":").map { seconds(String($0)) }
    guard parts.count == 3, let hours = parts[0], let minutes = parts[1], let seconds = parts[2] else { return nil }
    return hours * 3600 + minutes * 60 + seconds
  }
}

/// The first packets of a file, as "framecrc" tells them: stream 0 is the decoded sound, stream 1 the same coded,
/// stream 2 the pictures.
struct PacketList {
  private(set) var sampleRate: Int?
  private(set) var channels: Int?
  /// The places of the channels, by ffmpeg's name for them.
  private(set) var layout: String?
  /// Seconds on the file's clock.
  private(set) var soundStart: Double?
  /// The earliest of the pictures: they come in the order of decoding.
  private(set) var pictureStart: Double?
  /// Of the coded sound: when its first packet begins and its last, and the bytes of those before the last.
  private var coded: (start: Double, end: Double, bytes: Double, last: Double)?

  /// Bits a second of the coded sound; nil where a single packet tells nothing.
  var bitRate: Int? {
    guard let coded, coded.end > coded.start else { return nil }
    let rate = 8 * coded.bytes / (coded.end - coded.start)
    return (1...100_000_000).contains(rate) ? Int(rate) : nil
  }

  init(text: [UInt8]) {
    var units: [Int: Double] = [:]
    for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
      if line.hasPrefix("#") {
        read(header: line.dropFirst(), &units)
      } else {
        read(packet: line.split(separator: ",").map { $0.drop { $0 == " " } }, units)
      }
    }
  }

  private mutating func read(header line: Substring, _ units: inout [Int: Double]) {
    let words = line.split { $0 == " " || $0 == ":" }
    guard words.count == 3, let stream = Int(words[1]) else { return }
    switch words[0] {
    case "sample_rate" where stream == 0: sampleRate = Int(words[2])
    case "channel_layout_name" where stream == 0: layout = String(words[2])
    case "tb":
      let parts = words[2].split(separator: "/").map { Double($0) }
      if parts.count == 2, let over = parts[0], let under = parts[1], under > 0 { units[stream] = over / under }
    default: break
    }
  }

  private mutating func read(packet fields: [Substring], _ units: [Int: Double]) {
    guard fields.count > 4, let stream = Int(fields[0]), let unit = units[stream], let time = Double(fields[2]) else {
      return
    }
    let seconds = time * unit
    if stream == 1, let bytes = Double(fields[4]) {
      let before = coded ?? (seconds, seconds, 0, 0)
      coded = (before.start, seconds, before.bytes + before.last, bytes)
    }
    if stream == 2 {
      // Pictures before an edit list's start are there for the decoder alone.
      let flags = fields.first { $0.hasPrefix("F=0x") }.flatMap { Int($0.dropFirst(4), radix: 16) } ?? 0
      guard flags & 4 == 0 else { return }
      pictureStart = min(pictureStart ?? seconds, seconds)
    }
    guard stream == 0, soundStart == nil, let frames = Int(fields[3]), let bytes = Int(fields[4]), frames > 0 else {
      return
    }
    (soundStart, channels) = (seconds, bytes / 4 / frames)
  }
}
