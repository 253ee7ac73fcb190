import Terms

/// Checks that ffmpeg and ffprobe can read 800 samples of silence from a pipe, in the same fence as any file. If this
/// fails too, the failure isn't the file's fault.
package struct FFmpegCheck {
  private let headers: FencedRun
  private let packets: FencedRun

  /// 800 zero samples: 1,600 bytes.
  private static let silence = [Float](repeating: 0, count: 400)
  private static let input = ["-protocol_whitelist", "file,pipe", "-f", "s16le", "-i", "pipe:0"]

  /// Starts both programs. Throws `.system` if one can't be started.
  package init(_ ffmpeg: FFmpeg, in fencing: Fencing) throws(MediaError) {
    headers = try FencedRun(
      [ffmpeg.probePath, "-v", "quiet", "-show_entries", "stream=codec_name", "-of", "json"] + Self.input,
      in: fencing, takesInput: true)
    packets = try FencedRun(
      [ffmpeg.path, "-hide_banner", "-v", "quiet"] + Self.input + ["-f", "framecrc", "pipe:1"], in: fencing,
      takesInput: true)
  }

  /// Waits for both programs and returns whether they succeeded.
  package func works() -> Bool {
    for run in [headers, packets] {
      _ = run.write(Self.silence.span)
      guard !run.answer().isEmpty, run.failure == nil else { return false }
    }
    return true
  }
}
