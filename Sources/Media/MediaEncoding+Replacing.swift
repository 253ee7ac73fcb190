// A cleaned video is the same file with other sound: every packet of the other tracks is copied as it is, at the time
// that it has (-copyts), and the new sound is put where the old one's clock is at 0. It is coded as the old one was, or
// by the nearest that the container takes, with at least as many bits; `WrittenCodec` says which. The first of several
// audio tracks is replaced, the others are copied: see `CopiedTracks`.

extension MediaFacts {

  /// What is known of a file that was made so; nil where none is made.
  package var ofResult: MediaFacts? {
    guard let writtenCodec else { return nil }
    var facts = self
    (facts.container, facts.codec, facts.bitRate) = (writtenContainer, writtenCodec, nil)
    return facts
  }

  /// Seconds on the file's clock at which the new sound begins. A file of one sound has no clock but that sound's: what
  /// some muxers leave in front of it is not heard.
  fileprivate var writtenStart: Double {
    let isAlone = !hasPictures && audioTracks == 1 && others?.subtitles ?? 0 == 0
    return isAlone ? 0 : Double(firstFrame ?? 0) / Double(sampleRate)
  }

  fileprivate var muxer: String {
    switch writtenContainer {
    case .m4a: "ipod"
    case .mkv: "matroska"
    case .ts: "mpegts"
    case .mpg: "vob"
    default: writtenContainer.rawValue
    }
  }

  fileprivate var encoderWords: [String] {
    // As many as the source has, or what is transparent; as far as the encoder goes.
    let bits = max(bitRate ?? 0, 128_000 * channels)
    return switch writtenCodec {
    case let codec? where isStream: streamWords(codec, bits: bits)
    case "aac": ["-c:a:0", "aac", "-b:a:0", "\(min(bits, 6 * sampleRate * channels))"]
    case "opus": ["-c:a:0", "libopus", "-ar:a:0", "48000", "-b:a:0", "\(min(bits, 256_000 * channels))"]
    case "alac": ["-c:a:0", "alac", "-sample_fmt:a:0", "s32p"]
    // ffmpeg 5.1 calls FLAC in MP4 experimental.
    case "flac": ["-c:a:0", "flac", "-sample_fmt:a:0", "s32", "-strict", "experimental"]
    case "pcm_f32": ["-c:a:0", "pcm_f32le"]
    default: ["-c:a:0", "pcm_s24le"]
    }
  }

  var muxerWords: [String] {
    guard ["mp4", "mov", "ipod"].contains(muxer) else {
      // Where the first packet is an encoder's delay before 0 ffmpeg, if let, moves the pictures.
      let times = [.mkv, .webm].contains(container) ? PictureTimes.words : []
      return times + streamMuxerWords + ["-avoid_negative_ts", "disabled", "-f", muxer]
    }
    // Long keys are written in place of short ones, so only where the source has them.
    return ["-movflags", others?.hasLongKeys == true ? "+faststart+use_metadata_tags" : "+faststart", "-f", muxer]
  }
}

extension MediaEncoding {
  /// Starts ffmpeg, before this process fences itself in, on the file at `path`: that at `original`, whose facts are
  /// `facts`, with the samples that are written in place of its sound, and `tracks` beside it.
  ///
  /// Throws `.system` where ffmpeg can't be started.
  package convenience init(
    replacingSoundOf original: String, _ facts: MediaFacts, keeping tracks: CopiedTracks, into path: String,
    with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) {
    var zero = facts.writtenStart
    if facts.writtenCodec == "opus" {
      zero += try Self.opusLead(facts.muxer, tryingAt: path, with: ffmpeg, in: fencing)
    }
    let layout = facts.writtenCodec == "opus" ? Self.opusLayout(facts.channels) : facts.layout
    let sound = ["-itsoffset", "\(zero)"] + Self.input(facts.sampleRate, facts.channels, layout)
    let input = ffmpeg.inputWords(facts, copiesCovers: tracks.hasCovers)
    let words = tracks.words(sound: ["-map", "1:a"]) + facts.encoderWords + facts.soundWords + facts.muxerWords
    self.init(
      try FencedRun(
        [ffmpeg.path] + FFmpeg.quietly + ["-copyts"] + input + sound + words + ["-y", FencedRun.outputName],
        reading: original, writing: path, in: fencing, takesInput: true))
  }

  /// Seconds by which this ffmpeg has Opus in Matroska early. The times there are to be lessened by the codec's delay,
  /// which stands beside them: that of libopus is 312 frames. ffmpeg 5.1 writes it and forgets to put it onto the
  /// times, so the sound would come 6.5 ms early; another version may not. So a tenth of a second is written and read,
  /// at `path`.
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
    // Times are whole milliseconds.
    let start = PacketList(text: first.text(upTo: 65_536)).soundStart ?? 0
    return start < -0.003 ? 312.0 / 48_000 : 0
  }
}

extension MediaFacts {
  /// What is told of the new sound. The metadata of the file stay, the time of its making among them, which ffmpeg
  /// drops unless it is asked.
  fileprivate var soundWords: [String] {
    let language = others?.language.map { ["-metadata:s:a:0", "language=\($0)"] } ?? []
    return ["-disposition:a:0", "default", "-map_metadata", "0"] + language
  }
}
