import Media

extension Anomaly {
  /// What a cleaned file is, if it was to be of the source's kind and isn't. `facts`: of the source.
  public static func ofKind(_ facts: MediaFacts) -> [Anomaly] {
    guard facts.demuxer != nil else { return [] }
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
    guard facts.isStream, written != facts.codec else { return [] }
    return [
      Anomaly(
        code: "format_changed",
        detail: "The sound of \(facts.container.words) with \(facts.codec) is written as \(written).")
    ]
  }
}
