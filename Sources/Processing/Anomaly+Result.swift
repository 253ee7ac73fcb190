import AudioIO
import Media

extension Anomaly {
  /// What a cleaned file is, if it was to be of the source's kind and isn't. What `ofWriting` tells is not said again.
  /// `facts`: of the source.
  public static func ofKind(_ facts: MediaFacts) -> [Anomaly] {
    guard facts.demuxer != nil else { return facts.soundFormat.map(ofKind) ?? [] }
    guard let written = facts.writtenCodec else {
      let pictures = facts.video == nil ? "" : " The pictures are left out."
      return [
        Anomaly(
          code: "format_changed",
          detail: "This service doesn't write \(facts.container.words) with \(facts.codec): the result is "
            + "\(facts.isInteger ? "FLAC" : "WAV with 32-bit floats"), which loses nothing.\(pictures)")
      ]
    }
    if facts.writtenContainer != facts.container {
      let (source, result) = (facts.container.words, facts.writtenContainer.words)
      return [
        Anomaly(
          code: "format_changed",
          detail:
            "Copied into \(source), pictures of \(facts.pictures ?? "unknown") would lose their times: the result "
            + "is \(result) with \(written).")
      ]
    }
    guard written != facts.codec, !facts.losesSound else { return [] }
    return [
      Anomaly(
        code: "format_changed",
        detail: "The sound of \(facts.container.words) with \(facts.codec) is written as \(written).")
    ]
  }

  /// The same of a source that libsndfile reads.
  public static func ofKind(_ source: AudioFormat) -> [Anomaly] {
    guard let target = try? OutputFormat.same.format(for: source),
      target.container != source.container || target.codec.name != source.codec.name
    else { return [] }
    return [
      Anomaly(
        code: "format_changed",
        detail: "This service doesn't write \(source.container.rawValue) with \(source.codec.name): the result is "
          + "\(target.container.rawValue) with \(target.codec.name).")
    ]
  }

  /// Whether a warning of a recording is true of what is made of it, too: it tells of the sound, not of the file.
  public static func isOfSound(_ code: String) -> Bool {
    ["non_finite_samples", "frames_missing", "streams_left_out", "silence_left_out"].contains(code)
  }

  /// Whether a warning tells what the making of a cleaned file changed.
  public static func isOfResult(_ code: String) -> Bool {
    ["format_changed", "lossy_result", "tracks_left_out"].contains(code)
  }
}
