// A file is probed with two runs in parallel. `ffprobe` parses the headers and decodes nothing: tracks, sizes, lengths.
// For plain files, `SoundBoxes` replaces it. `ffmpeg` writes a line for each of the first packets in its "framecrc"
// format:
//
//   #sample_rate 0: 48000                       stream 0 is the decoded sound
//   #tb 0: 1/48000                              the unit of its timestamps
//   0,      -1024,          0,     1024,     4096, 0x787778c5
//   stream, decoding time, time, frames, bytes, checksum, and flags except for plain key frames (F=0x4: not shown)
//
// Stream 1 is the same sound in coded form, and stream 2 the pictures. For formats whose headers don't contain the
// pictures' size, ffmpeg writes nothing at all if it can't find it; so there the pictures get a separate run, and the
// sound is found in any case.
//
// So the start of the sound is taken from the decoder's output, in which encoder delay and edit lists are already
// accounted for; headers alone don't give that.

import FoundationEssentials
import Glibc
import Terms

/// A probe of a file. Start it before this process fences itself in; read the facts afterwards.
package struct MediaProbe {
  private let container: MediaContainer
  private let demuxer: Demuxer
  private let path: String
  /// The tracks, if they are known without ffprobe.
  private let known: TrackList?
  /// ffprobe; nil if the tracks are known.
  private let headers: FencedRun?
  private let packets: FencedRun
  /// The separate run for the pictures; nil if `packets` includes them.
  private let pictures: FencedRun?
  /// Bytes before the first frame, unless they consist only of tags.
  private let leadingBytes: Int?

  /// Starts to probe the file at `path`. Throws `.system` if a program can't be started.
  /// - Parameter readsBoxes: whether ffprobe isn't started for a file that `SoundBoxes` can read.
  package init(
    path: String, demuxer: Demuxer, with ffmpeg: FFmpeg, in fencing: Fencing, readsBoxes: Bool = true
  ) throws(MediaError) {
    self.demuxer = demuxer
    self.path = path
    container = MediaContainer(demuxer, path: path)
    let skipped = FileStart(path: path).flatMap { Self.skippedBytes($0, demuxer) }
    leadingBytes = skipped
    known = demuxer == .mov && readsBoxes ? SoundBoxes(path: path).map(TrackList.init(_:)) : nil
    headers =
      known == nil
      ? try FencedRun(Self.headerWords(demuxer, ffmpeg, skipping: skipped), reading: path, in: fencing) : nil
    // Matroska doesn't give a bit rate, but a second of packets does.
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

  /// Returns the number of bytes before the first frame or packet, or nil if there are none but tags.
  private static func skippedBytes(_ start: FileStart, _ demuxer: Demuxer) -> Int? {
    switch demuxer {
    case .aac, .ac3, .eac3:
      FirstFrame(start).flatMap { $0.demuxer == demuxer && $0.leadingBytes > 0 ? $0.offset : nil }
    case .mpeg: ProgramStream.begin(start).flatMap { $0 > 0 ? $0 : nil }
    default: nil
    }
  }

  /// ffprobe opens a decoder for every track, but without looking for stream information it gives them nothing to
  /// decode. If it must look, it gets only the decoders that ffmpeg has too.
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

  /// Returns the facts about the file. Throws `.noAudio` if it has no sound, `.undecodable` if the sound can't be
  /// decoded, and `.programFailed` if the file isn't, or may not be, at fault.
  package func facts() throws(MediaError) -> MediaFacts {
    let tracks = known ?? headers.flatMap { TrackList(json: $0.text(upTo: Self.outputLimit)) }
    var start = PacketList(text: packets.text(upTo: Self.outputLimit))
    if let pictures { start.add(pictures: pictures.text(upTo: Self.outputLimit)) }
    // ffmpeg catches SIGXCPU and is killed a second later; ffprobe does the same work and isn't.
    let runs = [headers, packets, pictures].compactMap(\.self)
    if runs.contains(where: { $0.end() == SIGXCPU }) { throw .tooSlow }
    if let failure = runs.lazy.compactMap(\.failure).first { throw .programFailed(failure) }
    // ffprobe doesn't report a track for which it has no decoder.
    let told = tracks.flatMap { $0.streams.isEmpty ? nil : $0 }
    guard let tracks = told ?? (demuxer.hidesTracks ? start.tracks : nil) else {
      throw .undecodable(container, codec: nil)
    }
    guard let audio = tracks.audio.first else { throw .noAudio(container) }
    guard let sampleRate = start.sampleRate, sampleRate > 0, let channels = start.channels, let first = start.soundStart
    else { throw .undecodable(container, codec: audio.codec) }
    let packedStart = audio.codec.hasPrefix("amr_") && demuxer != .amr ? start.packedStart : nil
    let sound = packedStart ?? first
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
      ?? end(of: audio, byPackets: isFragmented ? nil : packetSeconds, sound: sound, in: tracks).map {
        ($0 - (zero ?? 0)) * rate
      }
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
      leadingBytes: leadingBytes, packedStart: packedStart, sampleBits: audio.sampleBits)
  }

  /// Formats whose header counts the frames of sound.
  private static let counting: [Demuxer] = [.wv, .tta, .ape]

  /// Whether the file's own sizes show that its end is missing; nil if it has none.
  private func isCut(_ boxes: BoxExtent?) -> Bool? {
    switch demuxer {
    case .matroska: MatroskaExtent(path: path) == .cut
    case .mov: boxes.map { $0.verdict == .cut }
    case .avi, .wav, .caf, .flv, .voc, .wv, .mpegts, .mpeg, .dts, .dsf:
      ChunkExtent(path: path, demuxer) == .cut
    default: nil
    }
  }

  /// Returns the time on the file's clock, in seconds, that becomes 0. Sound without pictures begins with the first
  /// decoded sound: edit lists, encoder delay (iTunSMPB), and an initial gap don't count, in ffmpeg as in browsers.
  /// With pictures, players start at 0 even if the first track begins later. Anything less than a tenth of a second
  /// before 0 is an encoder's delay or a container's rounding. Anything earlier is kept, except in MP4, where an edit
  /// list has put before 0 what is not to be shown or heard. A clock that starts elsewhere, as in a piece of a
  /// broadcast, begins with the first content.
  ///
  /// Returns nil if there is no such clock and everything decoded is sound. An AMR file has a clock in that each of its
  /// frames has a time, including those that ffmpeg can't decode.
  private func zero(sound: Double, picture: Double?, isAlone: Bool) -> Double? {
    guard demuxer.hasTimeline || demuxer == .ogg && !isAlone && sound < 0 else { return demuxer == .amr ? 0 : nil }
    if isAlone { return sound }
    let first = min(sound, picture ?? sound)
    if demuxer.hasForeignClock { return first }
    if first > 60 { return first }
    return first < -0.1 && demuxer != .mov ? first : 0
  }

  /// The length of an MP4 file's sound track by its packets; nil if ffprobe was not needed, or isn't contradicted.
  private var packetSeconds: Double? { demuxer == .mov && known == nil ? SoundBoxes.packetSeconds(path: path) : nil }

  /// Returns the end of the track, in seconds. In Matroska, the tag DURATION is the end of the track if ffmpeg wrote
  /// it, and its length from its first packet on if mkvmerge did.
  private func end(
    of audio: TrackList.Stream, byPackets packets: Double?, sound: Double, in tracks: TrackList
  ) -> Double? {
    if let duration = audio.duration { return (audio.start ?? min(sound, 0)) + max(duration, packets ?? 0) }
    if let tagged = audio.taggedEnd { return tagged + (audio.tagsLength ? max(sound, 0) : 0) }
    return tracks.duration
  }
}

/// The tracks of a file, according to ffprobe.
struct TrackList {
  struct Stream {
    var codec: String
    var start: Double?
    var duration: Double?
    var bitRate: Int?
    /// Matroska's tag for the end of a track.
    var taggedEnd: Double?
    /// Whether that tag is the track's length, as in mkvmerge's statistics.
    var tagsLength = false
    /// Bits per sample of lossless sound.
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

  /// Creates a list from the streams found by `PacketList`.
  init(_ streams: [Answer.Stream]) { self.streams = streams }

  /// Fails if the text isn't ffprobe's JSON.
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

  /// The first picture track, not counting covers.
  private var firstPictures: Answer.Stream? {
    streams.first { $0.codec_type == "video" && $0.disposition?.attached_pic != 1 }
  }

  /// The codec of the first picture track.
  var pictures: String? { firstPictures.map { Self.name($0.codec_name) } }

  /// The first picture track, if its size is known.
  var video: MediaFacts.Video? {
    guard let pictures = firstPictures, let width = pictures.width, let height = pictures.height, width > 0, height > 0
    else {
      return nil
    }
    return MediaFacts.Video(codec: Self.name(pictures.codec_name), width: width, height: height)
  }

  var others: MediaFacts.OtherTracks {
    var others = MediaFacts.OtherTracks()
    var texts: [Int] = []
    for stream in streams {
      switch stream.codec_type {
      case "subtitle":
        others.subtitles += 1
        if let index = stream.index, MediaTexts.codecs.contains(stream.codec_name ?? "") { texts.append(index) }
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
    // Limits the number, because each of them appears on a command line.
    others.plainCovers = Array(others.plainCovers.prefix(Self.namedLimit))
    others.sensors = Array(others.sensors.prefix(Self.namedLimit))
    others.texts = Array(texts.prefix(MediaTexts.trackLimit))
    let language = streams.first { $0.codec_type == "audio" }?.tags?.language
    others.language = language.flatMap {
      $0.utf8.count == 3 && $0.utf8.allSatisfy { (97...122).contains($0) } ? $0 : nil
    }
    others.hasLongKeys = hasLongKeys
    return others
  }

  /// Returns the bits per sample for codecs that may be integers or floats.
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

  /// Returns the API's name of a codec, without the byte order.
  private static func name(_ codec: String?) -> String {
    guard let codec else { return "unknown" }
    if codec.hasPrefix("dsd_") { return "dsd" }
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
