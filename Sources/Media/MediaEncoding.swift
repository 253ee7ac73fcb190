import Terms

/// A sound file that ffmpeg encodes from samples, for cases that libsndfile can't. Blocks. Use it from one thread at a
/// time.
package final class MediaEncoding {
  private let run: FencedRun

  init(_ run: FencedRun) { self.run = run }

  /// Starts ffmpeg, which writes the file at `path`, replacing any existing one. Call it before this process fences
  /// itself in. The sound is resampled to a rate that the codec supports: Opus has few, MP3 none above 48 kHz. MP3 has
  /// at most two channels.
  ///
  /// The same samples become the same bytes: without a random serial number, and without a tag, behind which players
  /// would find the beginning of MP3, too. Throws `.system` if ffmpeg can't be started.
  package init(
    path: String, codec: OutputFormat.Encoder, sampleRate: Int, channels: Int, with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) {
    let input = Self.input(sampleRate, channels, Self.opusLayout(channels))
    let target =
      switch codec {
      // 118 kbit/s per channel, like libsndfile's in `AudioWriter`.
      case .opus:
        [
          "-c:a", "libopus", "-b:a", "\(118_000 * min(channels, 4))", "-ar", "48000", "-fflags", "+bitexact", "-f",
          "ogg",
        ]
      case .mp3:
        [
          "-c:a", "libmp3lame", "-q:a", "2", "-ac", "\(min(channels, 2))", "-ar", "\(Self.mp3Rate(sampleRate))",
          "-id3v2_version", "0", "-f", "mp3",
        ]
      }
    run = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + ["-protocol_whitelist", "file,pipe"] + input + target
        + Self.outputWords(stopsAtErrors: true), writing: path, in: fencing, takesInput: true)
  }

  /// Returns the arguments for the output file. On a full disk, ffmpeg 5.1 exits with 1 if it can't write a packet, but
  /// with 0 if it can't write its buffer at the end, or the file's index. So every packet is written at once, and
  /// `finish` compares the file's size with the one that ffmpeg reports. With `stopsAtErrors`, it exits with 1 in any
  /// case, but also if a packet of its input is damaged.
  static func outputWords(stopsAtErrors: Bool = false) -> [String] {
    (stopsAtErrors ? ["-xerror"] : ["-flush_packets", "1"]) + FencedRun.progressWords(everySeconds: 3600)
      + ["-y", FencedRun.outputName]
  }

  /// The layout that Opus defines for this number of channels (RFC 7845 §5.1.1.2), for those where ffmpeg's default
  /// differs: it would take the last of three for low frequencies, and the last two of four for center and back.
  static func opusLayout(_ channels: Int) -> String? { [3: "3.0", 4: "quad"][channels] }

  /// Returns the arguments that describe the samples passed to ffmpeg.
  static func input(_ sampleRate: Int, _ channels: Int, _ layout: String?) -> [String] {
    ["-f", "f32le", "-ar", "\(sampleRate)", "-ac", "\(channels)"] + (layout.map { ["-channel_layout", $0] } ?? [])
      + ["-i", "pipe:0"]
  }

  static func mp3Rate(_ sampleRate: Int) -> Int {
    [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000].first { $0 >= sampleRate } ?? 48_000
  }

  /// Encodes interleaved samples with full scale ±1. Throws `.encoderFailed` if ffmpeg accepts no more, and `.system`
  /// if that is because it can't write.
  package func write(_ samples: Span<Float>) throws(MediaError) {
    guard run.write(samples) else { throw failure }
  }

  /// Waits until ffmpeg has ended. Throws `.encoderFailed` if it failed, and `.system` if it couldn't write the file.
  package func finish() throws(MediaError) {
    guard run.finishInput() else { throw failure }
  }

  private var failure: MediaError {
    run.end()
    guard run.exitStatus != nil, let number = run.tryWriting() else { return .encoderFailed }
    return .system(operation: "write", errno: number)
  }
}
