import Terms

// A cleaned video is the same file with other sound. Every packet of the other tracks is copied unchanged, with its
// timestamp (-copyts), and the new sound starts where the old one's clock is 0. The sound is coded like the old one, or
// with the closest codec that the container supports, at no lower bit rate; see `WrittenCodec`. The first of several
// audio tracks is replaced and the others are copied; see `CopiedTracks`.

extension MediaFacts {
  /// The time in seconds on the file's clock at which the new sound begins. A file with only one sound track has no
  /// clock but that track's: the gap that some muxers leave before it is not played.
  var writtenStart: Double {
    let isAlone = !hasPictures && audioTracks == 1 && others?.subtitles ?? 0 == 0
    return isAlone ? 0 : Double(firstFrame ?? 0) / Double(sampleRate)
  }

  var encoderWords: [String] {
    // The bit rate of the source or a transparent one, whichever is higher, up to the encoder's maximum.
    let bits = max(bitRate ?? 0, 128_000 * channels)
    return switch writtenCodec {
    case let codec? where isStream: streamWords(codec, bits: bits)
    case "aac": ["-c:a:0", "aac", "-b:a:0", "\(min(bits, 6 * sampleRate * channels))"]
    case "opus": ["-c:a:0", "libopus", "-ar:a:0", "48000", "-b:a:0", "\(min(bits, 256_000 * channels))"]
    case "alac": ["-c:a:0", "alac", "-sample_fmt:a:0", "s32p"]
    // ffmpeg 5.1 considers FLAC in MP4 experimental.
    case "flac": ["-c:a:0", "flac", "-sample_fmt:a:0", "s32", "-strict", "experimental"]
    case "pcm_f32": ["-c:a:0", "pcm_f32le"]
    default: ["-c:a:0", "pcm_s24le"]
    }
  }

  func muxerWords(cut: MediaCut? = nil) -> [String] {
    guard hasEditLists else {
      // If the first packet contains an encoder's delay before 0, ffmpeg would by default shift the pictures.
      let times = [.mkv, .webm].contains(container) ? PictureTimes.words(isCut: cut != nil) : []
      return times + streamMuxerWords + ["-avoid_negative_ts", "disabled", "-f", muxer]
    }
    // Long keys would replace the short ones, so they are written only if the source has them.
    return (cut == nil ? [] : MediaCut.alignedPictures) + [
      "-movflags", others?.hasLongKeys == true ? "+faststart+use_metadata_tags" : "+faststart", "-f", muxer,
    ]
  }
}

extension MediaEncoding {
  /// Starts ffmpeg, which writes the file at `path`: a copy of `original`, described by `facts`, with the samples
  /// passed to `write` as its sound, and with `tracks`. `cut` is the part that the sound belongs to; nil for the whole.
  /// Call it before this process fences itself in.
  ///
  /// Throws `.system` if ffmpeg can't be started.
  package convenience init(
    replacingSoundOf original: String, _ facts: MediaFacts, keeping tracks: CopiedTracks, cut: MediaCut? = nil,
    into path: String, with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) {
    var zero = cut?.soundStart ?? facts.writtenStart
    if facts.writtenCodec == "opus" {
      zero += try Self.opusLead(facts.muxer, tryingAt: path, with: ffmpeg, in: fencing)
    }
    let layout = facts.writtenCodec == "opus" ? Self.opusLayout(facts.channels) : facts.layout
    let sound = ["-itsoffset", "\(zero)"] + Self.input(facts.sampleRate, facts.channels, layout)
    let input = (cut?.inputWords ?? []) + ffmpeg.inputWords(facts, copiesCovers: tracks.hasCovers)
    let words =
      tracks.words(sound: ["-map", "1:a"], cut: cut) + facts.encoderWords + facts.soundWords
      + facts.muxerWords(cut: cut)
    self.init(
      try FencedRun(
        [ffmpeg.path] + FFmpeg.quietly + (cut?.keepsClock ?? true ? ["-copyts"] : []) + input + sound + words
          + Self.outputWords(),
        reading: original, writing: path, in: fencing, takesInput: true))
  }

  /// Returns the number of seconds by which this ffmpeg writes Opus too early into Matroska. There, the codec's delay
  /// is stored with the track and is to be subtracted from the timestamps; for libopus it is 312 frames. ffmpeg 5.1
  /// stores the delay but forgets to add it to the timestamps, so the sound would come 6.5 ms early; other versions may
  /// not. So this writes and reads a tenth of a second at `path`.
  static func opusLead(
    _ muxer: String, tryingAt path: String, with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) -> Double {
    let silence = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + ["-copyts", "-f", "lavfi", "-i", "anullsrc=r=48000:cl=mono:d=0.1"]
        + ["-c:a", "libopus", "-avoid_negative_ts", "disabled", "-f", muxer, "-y", FencedRun.outputName], writing: path,
      in: fencing)
    guard silence.finishInput() else { return 0 }
    let first = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + ["-copyts"] + ffmpeg.inputWords(.matroska)
        + ["-c:a", "pcm_f32le", "-frames:a", "1", "-f", "framecrc", "pipe:1"], reading: path, in: fencing)
    // Timestamps are whole milliseconds.
    let start = PacketList(text: first.text(upTo: 65_536)).soundStart ?? 0
    return start < -0.003 ? 312.0 / 48_000 : 0
  }
}

extension MediaFacts {
  /// The metadata of the new sound. The file's metadata are kept, including the creation time, which ffmpeg drops by
  /// default.
  ///
  /// Its loudness isn't kept: the sound has changed.
  fileprivate var soundWords: [String] {
    let language = others?.language.map { ["-metadata:s:a:0", "language=\($0)"] } ?? []
    return ["-disposition:a:0", "default", "-map_metadata", "0"] + Self.noGain + language
  }
  private static let noGain = [
    "REPLAYGAIN_TRACK_GAIN", "REPLAYGAIN_TRACK_PEAK", "REPLAYGAIN_ALBUM_GAIN", "REPLAYGAIN_ALBUM_PEAK",
    "REPLAYGAIN_REFERENCE_LOUDNESS", "R128_TRACK_GAIN", "R128_ALBUM_GAIN",
  ].flatMap { ["-metadata", "\($0)="] }
}
