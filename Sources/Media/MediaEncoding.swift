/// A sound file that ffmpeg makes of the samples it is given, where libsndfile can't. Confined; blocks.
package final class MediaEncoding {
  /// How the sound is coded.
  package enum Codec: String, Sendable, CaseIterable {
    case opus, mp3
  }

  private let run: FencedRun

  init(_ run: FencedRun) { self.run = run }

  /// Starts ffmpeg, before this process fences itself in. It writes the file at `path`, replacing what is there, at a
  /// rate that the codec has: Opus has few, MP3 none above 48 kHz and two channels at the most.
  ///
  /// Throws `.system` where ffmpeg can't be started.
  package init(
    path: String, codec: Codec, sampleRate: Int, channels: Int, with ffmpeg: FFmpeg, in fencing: Fencing
  ) throws(MediaError) {
    let input = Self.input(sampleRate, channels, Self.opusLayout(channels))
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
      [ffmpeg.path] + FFmpeg.quietly + ["-protocol_whitelist", "file,pipe"] + input + target
        + ["-y", FencedRun.outputName], writing: path, in: fencing, takesInput: true)
  }

  /// Numbers of channels that come into their places in Opus: of 5 and 7 ffmpeg 5.1 puts some in others'.
  package static let opusChannels: Set = [1, 2, 3, 4, 6, 8]

  /// The places that Opus has for so many channels (RFC 7845 §5.1.1.2), where ffmpeg, left to itself, takes others: the
  /// last of three for one of low frequencies, and the last two of four for centre and back.
  static func opusLayout(_ channels: Int) -> String? { [3: "3.0", 4: "quad"][channels] }

  /// How ffmpeg is told of the samples that it is given.
  static func input(_ sampleRate: Int, _ channels: Int, _ layout: String?) -> [String] {
    ["-f", "f32le", "-ar", "\(sampleRate)", "-ac", "\(channels)"] + (layout.map { ["-channel_layout", $0] } ?? [])
      + ["-i", "pipe:0"]
  }

  private static func mp3Rate(_ sampleRate: Int) -> Int {
    [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000].first { $0 >= sampleRate } ?? 48_000
  }

  /// Takes interleaved samples of full scale ±1. Throws `.encoderFailed` where ffmpeg takes no more.
  package func write(_ samples: Span<Float>) throws(MediaError) {
    guard run.write(samples) else { throw .encoderFailed }
  }

  /// Waits until ffmpeg has ended. Throws `.encoderFailed` where it did so badly.
  package func finish() throws(MediaError) {
    guard run.finishInput() else { throw .encoderFailed }
  }
}
