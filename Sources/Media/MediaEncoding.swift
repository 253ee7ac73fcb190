/// A sound file that ffmpeg makes of the samples it is given, where libsndfile can't. Confined; blocks.
public final class MediaEncoding {
  /// How the sound is coded.
  public enum Codec: String, Sendable, CaseIterable {
    case opus, mp3
  }

  private let run: FencedRun

  init(_ run: FencedRun) { self.run = run }

  /// Starts ffmpeg, before this process fences itself in. It writes the file at `path`, replacing what is there, at a rate
  /// that the codec has: Opus has few, MP3 none above 48 kHz and two channels at the most.
  ///
  /// Throws `.system` where ffmpeg can't be started.
  public init(
    path: String, codec: Codec, sampleRate: Int, channels: Int, with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) {
    // Left to itself ffmpeg takes the last of three for one of low frequencies, of which Opus has no such three, and the
    // last two of four for centre and back.
    let layout = [3: "3.0", 4: "quad"][channels].map { ["-channel_layout", $0] } ?? []
    let input = ["-f", "f32le", "-ar", "\(sampleRate)", "-ac", "\(channels)"] + layout + ["-i", "pipe:0"]
    let target =
      switch codec {
      // 118 kbit/s a channel, as libsndfile writes it here.
      case .opus: ["-c:a", "libopus", "-b:a", "\(118_000 * min(channels, 4))", "-ar", "48000", "-f", "ogg"]
      case .mp3:
        [
          "-c:a", "libmp3lame", "-q:a", "2", "-ac", "\(min(channels, 2))", "-ar", "\(Self.mp3Rate(sampleRate))", "-f",
          "mp3",
        ]
      }
    run = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + ["-protocol_whitelist", "file,pipe"] + input + target + ["-y", "file:\(path)"],
      in: fencing, takesInput: true)
  }

  private static func mp3Rate(_ sampleRate: Int) -> Int {
    [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000].first { $0 >= sampleRate } ?? 48_000
  }

  /// Takes interleaved samples of full scale ±1. Throws `.encoderFailed` where ffmpeg takes no more.
  public func write(_ samples: Span<Float>) throws(MediaError) {
    guard run.write(samples) else { throw .encoderFailed }
  }

  /// Waits until ffmpeg has ended. Throws `.encoderFailed` where it did so badly.
  public func finish() throws(MediaError) {
    guard run.finishInput() else { throw .encoderFailed }
  }
}
