// What is asked of a file, in two runs that go on at the same time. `ffprobe` reads the headers and decodes nothing:
// tracks, sizes, lengths. `ffmpeg` writes, as its "framecrc" does, a line for each of the first packets:
//
//   #sample_rate 0: 48000                       of stream 0, the sound as it is decoded
//   #tb 0: 1/48000                              the unit of its times
//   0,      -1024,          0,     1024,     4096, 0x787778c5
//   stream, decoding time, time, frames, bytes, checksum, flags unless it is a plain key frame: F=0x4, not to be shown
//
// Stream 1 is the same sound as it is coded, stream 2 the pictures. Where the pictures' size is not in the headers
// ffmpeg writes nothing if it doesn't find it: there they have a run of their own, so that the sound is had in any
// case.
//
// So where sound begins is taken from what comes out of the decoder: an encoder's delay and edit lists have been dealt
// with by then, which no header alone tells.

import FoundationEssentials
import Glibc

/// A look at a file, from its start, which comes before this process fences itself in, to its facts, which come after.
package struct MediaProbe {
  private let container: MediaContainer
  private let demuxer: Demuxer
  private let path: String
  private let headers: FencedRun
  private let packets: FencedRun
  /// nil where `packets` has them.
  private let pictures: FencedRun?
  /// Bytes before the first frame, if not all of them are tags.
  private let leadingBytes: Int?

  /// Starts to look at the file at `path`. Throws `.system` where a program can't be started.
  package init(path: String, demuxer: Demuxer, with ffmpeg: FFmpeg, in fencing: Fencing) throws(MediaError) {
    self.demuxer = demuxer
    self.path = path
    container = MediaContainer(demuxer, path: path)
    let skipped = FileStart(path: path).flatMap { Self.skippedBytes($0, demuxer) }
    leadingBytes = skipped
    headers = try FencedRun(Self.headerWords(demuxer, ffmpeg, skipping: skipped), reading: path, in: fencing)
    // Matroska tells no bit rate: a second of packets does.
    let coded = demuxer == .matroska ? "64" : "1"
    let sound = ["-map", "0:a:0", "-c:0", "pcm_f32le", "-map", "0:a:0", "-c:1", "copy"]
    let picture = ["-map", "0:V:0?", "-c:v", "copy", "-frames:v", "16"]
    let input =
      [ffmpeg.path] + FFmpeg.quietly + ["-copyts"] + ffmpeg.inputWords(demuxer, leadingBytes: skipped)
    let output = ["-f", "framecrc", "pipe:1"]
    packets = try FencedRun(
      input + sound + (demuxer.hidesTracks ? [] : picture) + ["-frames:a:0", "8", "-frames:a:1", coded] + output,
      reading: path, in: fencing)
    pictures = demuxer.hidesTracks ? try FencedRun(input + picture + output, reading: path, in: fencing) : nil
  }

  /// Bytes before the first frame or packet; nil where there are none but tags.
  private static func skippedBytes(_ start: FileStart, _ demuxer: Demuxer) -> Int? {
    switch demuxer {
    case .aac, .ac3, .eac3:
      FirstFrame(start).flatMap { $0.demuxer == demuxer && $0.leadingBytes > 0 ? $0.offset : nil }
    case .mpeg: ProgramStream.begin(start).flatMap { $0 > 0 ? $0 : nil }
    default: nil
    }
  }

  /// ffprobe opens a decoder for every track; without looking for stream information it gives them nothing to decode.
  /// Where it has to look, it has those decoders alone that ffmpeg has, too.
  private static func headerWords(_ demuxer: Demuxer, _ ffmpeg: FFmpeg, skipping bytes: Int?) -> [String] {
    let shown =
      "stream=index,codec_name,codec_type,codec_tag_string,width,height,start_time,duration,bit_rate,sample_fmt"
      + ",bits_per_raw_sample"
      + ":stream_disposition=attached_pic:stream_tags=DURATION,BPS,language,_STATISTICS_WRITING_APP:format=duration"
      + ":format_tags=com.apple.quicktime.make,com.apple.quicktime.creationdate:chapter=id"
    var words = ["-v", "quiet", "-show_entries", shown, "-of", "json", "-protocol_whitelist", "file,pipe"]
    if !demuxer.hidesTracks, demuxer.hasTimeline || demuxer == .ogg {
      words.append("-nofind_stream_info")
    } else {
      let subtitles = demuxer.hidesTracks ? "," + FFmpeg.pictureDecoders + ",dvbsub,dvdsub,pgssub" : ""
      words += ["-codec_whitelist", FFmpeg.decoders + subtitles]
    }
    if let bytes { words += ["-skip_initial_bytes", "\(bytes)"] }
    return [ffmpeg.probePath] + words + ["-f", demuxer.rawValue, FencedRun.inputName]
  }

  private static let outputLimit = 1 << 20

  /// What the file holds. Throws `.noAudio` where there is no sound, `.undecodable` where none of it can be decoded,
  /// and `.programFailed` if it is not the file's fault, or may not be.
  package func facts() throws(MediaError) -> MediaFacts {
    let tracks = TrackList(json: headers.text(upTo: Self.outputLimit))
    var start = PacketList(text: packets.text(upTo: Self.outputLimit))
    if let pictures { start.add(pictures: pictures.text(upTo: Self.outputLimit)) }
    // ffmpeg, which catches SIGXCPU, is killed a second later; ffprobe does the same work and is not.
    let runs = [headers, packets] + (pictures.map { [$0] } ?? [])
    if runs.contains(where: { $0.end() == SIGXCPU }) { throw .tooSlow }
    if let failure = runs.lazy.compactMap(\.failure).first { throw .programFailed(failure) }
    // Of a track that it has no decoder for, ffprobe says nothing at all.
    let told = tracks.flatMap { $0.streams.isEmpty ? nil : $0 }
    guard let tracks = told ?? (demuxer.hidesTracks ? start.tracks : nil) else {
      throw .undecodable(container, codec: nil)
    }
    guard let audio = tracks.audio.first else { throw .noAudio(container) }
    guard let sampleRate = start.sampleRate, sampleRate > 0, let channels = start.channels, let sound = start.soundStart
    else { throw .undecodable(container, codec: audio.codec) }
    let rate = Double(sampleRate)
    let pictures = tracks.pictures ?? start.video?.codec
    let zero = zero(sound: sound, picture: start.pictureStart, isAlone: pictures == nil)
    let telephone = demuxer == .amr ? AMRExtent(path: path) : nil
    let boxes = demuxer == .mov ? BoxExtent(path: path) : nil
    let isFragmented = boxes?.isFragmented == true
    let isFlashFilm = demuxer == .flv && (tracks.video ?? start.video) != nil
    let isMusepack = demuxer == .mpc || demuxer == .mpc8
    let musepack = isMusepack ? MusepackLength.samples(path: path).map(Double.init) : nil
    let end =
      musepack ?? telephone.map { Double($0.frames) * AMRExtent.frameSeconds * rate }
      ?? end(of: audio, sound: sound, in: tracks).map { ($0 - (zero ?? 0)) * rate }
    return MediaFacts(
      demuxer: demuxer, container: container, codec: audio.codec, sampleRate: sampleRate, channels: channels,
      layout: [3, 4].contains(channels) ? start.layout : nil,
      firstFrame: zero.map { Int64(($0 * rate).rounded()) },
      firstIsLate: isFlashFilm ? start.lateness(sampleRate: rate) : nil, bitRate: audio.bitRate ?? start.bitRate,
      promisedFrames: end.flatMap { $0 >= 1 && $0 < 0x1p62 ? Int64($0.rounded()) : nil },
      promisesLength: audio.taggedEnd != nil || demuxer == .mov && !isFragmented || telephone != nil || musepack != nil
        || Self.counting.contains(demuxer),
      endsAsPromised: demuxer == .mov && !isFragmented || telephone != nil,
      audioTracks: tracks.audio.count, video: tracks.video ?? start.video,
      pictures: pictures, isCut: telephone?.isCut ?? isCut(boxes),
      lacksLength: demuxer == .matroska ? audio.taggedEnd == nil && tracks.duration == nil : nil,
      silentSeconds: telephone.map { Double($0.silentFrames) * AMRExtent.frameSeconds }, others: tracks.others,
      leadingBytes: leadingBytes, sampleBits: audio.sampleBits)
  }

  /// Those whose header counts the frames of sound.
  private static let counting: [Demuxer] = [.wv, .tta, .ape]

  /// Whether the file's own sizes show that its end is missing; nil where it has none.
  private func isCut(_ boxes: BoxExtent?) -> Bool? {
    switch demuxer {
    case .matroska: MatroskaExtent(path: path) == .cut
    case .mov: boxes.map { $0.verdict == .cut }
    case .avi, .wav, .caf, .flv, .voc, .wv, .mpegts, .mpeg, .dts: ChunkExtent(path: path, demuxer) == .cut
    default: nil
    }
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
    if demuxer.hasForeignClock { return first }
    if first > 60 { return first }
    return first < -0.1 && demuxer != .mov ? first : 0
  }

  /// In Matroska the tag DURATION is the end of the track if ffmpeg wrote it, and its length, from its first packet on,
  /// if mkvmerge did.
  private func end(of audio: TrackList.Stream, sound: Double, in tracks: TrackList) -> Double? {
    if let duration = audio.duration { return (audio.start ?? min(sound, 0)) + duration }
    if let tagged = audio.taggedEnd { return tagged + (audio.tagsLength ? max(sound, 0) : 0) }
    return tracks.duration
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
    /// Whether that tag is its length, by mkvmerge's statistics.
    var tagsLength = false
    /// Of lossless sound.
    var sampleBits: Int?
  }

  private(set) var streams: [Answer.Stream] = []
  private(set) var duration: Double?
  private var hasChapters = false
  private var hasLongKeys = false

  struct Answer: Decodable {
    struct Stream: Decodable {
      struct Disposition: Decodable { var attached_pic: Int? }
      struct Tags: Decodable { var DURATION, BPS, language, _STATISTICS_WRITING_APP: String? }
      var codec_name, codec_type, codec_tag_string, start_time, duration, bit_rate: String?
      var sample_fmt, bits_per_raw_sample: String?
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

  /// Those that `PacketList` has seen.
  init(_ streams: [Answer.Stream]) { self.streams = streams }

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
        taggedEnd: stream.tags?.DURATION.flatMap(Self.clock),
        tagsLength: stream.tags?._STATISTICS_WRITING_APP?.hasPrefix("mkvmerge") == true,
        sampleBits: Self.sampleBits(stream))
    }
  }

  /// A cover is no video.
  private var firstPictures: Answer.Stream? {
    streams.first { $0.codec_type == "video" && $0.disposition?.attached_pic != 1 }
  }

  /// The codec of the first track of pictures.
  var pictures: String? { firstPictures.map { Self.name($0.codec_name) } }

  /// That track, if its size is known.
  var video: MediaFacts.Video? {
    guard let pictures = firstPictures, let width = pictures.width, let height = pictures.height, width > 0, height > 0
    else {
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

  /// Of the codecs that may be integers or floats.
  private static func sampleBits(_ stream: Answer.Stream) -> Int? {
    guard ["wavpack", "ape"].contains(stream.codec_name) else { return nil }
    switch stream.sample_fmt?.prefix(3) {
    case "u8", "u8p": return 8
    case "s16": return 16
    case "s32": return stream.bits_per_raw_sample.flatMap { Int($0) }.flatMap { (1...32).contains($0) ? $0 : nil } ?? 32
    default: return nil
    }
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
  /// The first frames of sound: when they begin on the file's clock, in seconds, and how long they are.
  private var sounds: [(start: Double, frames: Int)] = []
  /// The earliest of the pictures: they come in the order of decoding.
  private(set) var pictureStart: Double?
  /// Of the coded sound: when its first packet begins and its last, and the bytes of those before the last.
  private var coded: (start: Double, end: Double, bytes: Double, last: Double)?

  /// By stream.
  private var codecs: [Int: String] = [:]
  private var pictureSize: (width: Int, height: Int)?

  /// Sound, and pictures if their size is known.
  var tracks: TrackList? {
    guard let codec = codecs[1] else { return nil }
    let sound = TrackList.Answer.Stream(codec_name: codec, codec_type: "audio", index: 0)
    return TrackList([sound])
  }

  /// The pictures, if their size is known.
  var video: MediaFacts.Video? {
    guard let codec = codecs[2], let pictureSize, pictureSize.width > 0, pictureSize.height > 0 else { return nil }
    return MediaFacts.Video(codec: codec, width: pictureSize.width, height: pictureSize.height)
  }

  /// Bits a second of the coded sound; nil where a single packet tells nothing.
  var bitRate: Int? {
    guard let coded, coded.end > coded.start else { return nil }
    let rate = 8 * coded.bytes / (coded.end - coded.start)
    return (1...100_000_000).contains(rate) ? Int(rate) : nil
  }

  init(text: [UInt8]) { read(text, firstStream: 0) }

  /// The pictures from a run of their own.
  mutating func add(pictures text: [UInt8]) { read(text, firstStream: 2) }

  private mutating func read(_ text: [UInt8], firstStream: Int) {
    var units: [Int: Double] = [:]
    for line in String(decoding: text, as: UTF8.self).split(separator: "\n") {
      if line.hasPrefix("#") {
        read(header: line.dropFirst(), firstStream, &units)
      } else {
        read(packet: line.split(separator: ",").map { $0.drop { $0 == " " } }, firstStream, units)
      }
    }
  }

  private mutating func read(header line: Substring, _ firstStream: Int, _ units: inout [Int: Double]) {
    let words = line.split { $0 == " " || $0 == ":" }
    guard words.count == 3, let stream = Int(words[1]).map({ $0 + firstStream }) else { return }
    switch words[0] {
    case "codec_id": codecs[stream] = String(words[2])
    case "dimensions" where stream == 2:
      let sides = words[2].split(separator: "x").compactMap { Int($0) }
      if sides.count == 2 { pictureSize = (sides[0], sides[1]) }
    case "sample_rate" where stream == 0: sampleRate = Int(words[2])
    case "channel_layout_name" where stream == 0: layout = String(words[2])
    case "tb":
      let parts = words[2].split(separator: "/").map { Double($0) }
      if parts.count == 2, let over = parts[0], let under = parts[1], under > 0 { units[stream] = over / under }
    default: break
    }
  }

  /// Less than any time: AVI doesn't tell when a picture is shown.
  private static let noTime = -0x1p62

  private mutating func read(packet fields: [Substring], _ firstStream: Int, _ units: [Int: Double]) {
    guard fields.count > 4, let stream = Int(fields[0]).map({ $0 + firstStream }), let unit = units[stream],
      let time = Double(fields[2]), time > Self.noTime
    else { return }
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
    guard stream == 0, let frames = Int(fields[3]), let bytes = Int(fields[4]), frames > 0 else { return }
    sounds.append((seconds, frames))
    guard soundStart == nil else { return }
    (soundStart, channels) = (seconds, bytes / 4 / frames)
  }

  /// Frames by which the first sound's time is later than most of those behind it say. GStreamer gives an encoder's
  /// delay, which it would have to put before 0, the time of the sound behind it.
  ///
  /// nil for the rounding to milliseconds, and for leaps, which decoding closes where they are.
  func lateness(sampleRate: Double) -> Int64? {
    var (first, starts) = (0.0, [Double]())
    for sound in sounds {
      starts.append(sound.start - first)
      first += Double(sound.frames) / sampleRate
    }
    guard let begin = starts.first else { return nil }
    let late = begin - starts.sorted()[starts.count / 2]
    return (0.003...0.03).contains(late.magnitude) ? Int64((late * sampleRate).rounded()) : nil
  }
}
