import Terms

// The timed text of a file that ffmpeg reads. `ffprobe` lists its chapters and tags. Subtitles of MP4 and MOV are
// decoded by `ffmpeg`, which writes them all in one pass as SubRip in Matroska. For Matroska itself ffmpeg isn't used:
// version 5.1 doesn't know the WebVTT of mkvmerge, and drops speakers and the times of words.

/// The programs that read a file's chapters, tags and subtitles. Start them before this process fences itself in; read
/// what they say afterward. Blocks.
package struct MediaTexts {
  /// The codecs of subtitles that ffmpeg decodes to text.
  static let codecs = ["mov_text", "text"]
  /// Maximum number of subtitle tracks.
  static let trackLimit = 64

  private let headers: FencedRun
  private let subtitles: FencedRun?

  private static let reportLimit = 32 << 20
  private static let subtitlesLimit = 40 << 20

  /// Starts the programs. Throws `.system` if one can't be started.
  package init(path: String, facts: MediaFacts, with ffmpeg: FFmpeg, in fencing: Fencing) throws(MediaError) {
    guard let demuxer = facts.demuxer else { preconditionFailure("libsndfile reads it") }
    headers = try FencedRun(
      [
        ffmpeg.probePath, "-v", "quiet", "-show_entries", "chapter=start_time,end_time:chapter_tags=title:format_tags",
        "-of", "json", "-protocol_whitelist", "file,pipe", "-nofind_stream_info", "-f", demuxer.rawValue,
        FencedRun.inputName,
      ], reading: path, in: fencing)
    guard demuxer == .mov, let texts = facts.others?.texts, !texts.isEmpty else {
      subtitles = nil
      return
    }
    let input = ffmpeg.inputWords(demuxer, decodesTexts: true)
    subtitles = try FencedRun(
      [ffmpeg.path] + FFmpeg.quietly + ["-copyts"] + input + texts.flatMap { ["-map", "0:\($0)"] }
        + ["-map_chapters", "-1", "-c:s", "srt", "-f", "matroska", "pipe:1"], reading: path, in: fencing)
  }

  /// Returns the chapters and tags as ffprobe's JSON; empty if it failed. Call it once.
  package func report() -> [UInt8] { headers.text(upTo: Self.reportLimit) }

  /// Returns the subtitles in a Matroska file, or nil if there are none that ffmpeg decodes. Call it once.
  package func decodedSubtitles() -> [UInt8]? { subtitles?.text(upTo: Self.subtitlesLimit) }
}
