import Denoise
import Terms

extension Warning {
  /// For files that have no index, and whose bytes aren't spread evenly over time.
  package static let seeksInexactly = Warning(
    code: "seeks_inexactly",
    detail:
      "The file has no index of its times, so players that seek in it only guess where they are. Its waveform and "
      + "parts are exact, and so is the file as WAV.")

  /// Whether the warning concerns results made from the file, and not only its players.
  package var isAboutWork: Bool { self != .seeksInexactly }

  /// Says how a cleaned file that should have its source's format differs from it: in container, in codec, or because
  /// its audio is no longer lossless. At most one warning. `facts` are the source's.
  package static func ofKind(_ facts: MediaFacts) -> [Warning] {
    guard facts.demuxer != nil else { return facts.soundFormat.map(ofKind) ?? [] }
    guard let written = facts.writtenCodec else {
      let pictures = facts.video == nil ? "" : " The pictures are left out."
      return [
        Warning(
          code: "format_changed",
          detail: "This service doesn't write \(facts.container.words) with \(facts.codec): the result is "
            + "\(facts.isInteger ? "FLAC" : "WAV with 32-bit floats"), which is lossless.\(pictures)")
      ]
    }
    if facts.writtenContainer != facts.container {
      let (source, result) = (facts.container.words, facts.writtenContainer.words)
      return [
        Warning(
          code: "format_changed",
          detail:
            "Copied into \(source), pictures of \(facts.pictures ?? "unknown") would lose their times: the result "
            + "is \(result) with \(written).")
      ]
    }
    if facts.losesSound {
      return [
        Warning(
          code: "lossy_result",
          detail: "The source's sound is lossless (\(facts.codec)), but the result's is not (\(written)), because this "
            + "kind of file can't hold it. Use \"format\":\"wav\" for a lossless result.")
      ]
    }
    guard written != facts.codec else { return [] }
    return [
      Warning(
        code: "format_changed",
        detail: "The sound of \(facts.container.words) with \(facts.codec) is written as \(written).")
    ]
  }

  /// The warning for a result of another format than its source, which libsndfile reads.
  package static func ofKind(_ source: AudioFormat) -> [Warning] {
    guard let target = try? OutputFormat.same.format(for: source),
      target.container != source.container || target.codec.name != source.codec.name
    else { return [] }
    return [
      Warning(
        code: "format_changed",
        detail: "This service doesn't write \(source.container.rawValue) with \(source.codec.name): the result is "
          + "\(target.container.rawValue) with \(target.codec.name).")
    ]
  }

  /// Whether a warning about a recording also applies to its cleaned result, because it's about the audio rather than
  /// the file.
  package static func isOfSound(_ code: String) -> Bool {
    ["non_finite_samples", "frames_missing", "streams_left_out", "silence_left_out"].contains(code)
  }

  /// Whether a warning is about something that cleaning changed.
  package static func isOfResult(_ code: String) -> Bool {
    [
      "format_changed", "lossy_result", "tracks_left_out", "chunks_left_out", "over_full_scale", "dc_offset",
      "loudness_missed", "profile_bands", "profile_channels", "not_speech", "noise_has_speech", "noise_not_found",
    ].contains(code)
  }

  /// Says how many tracks of labels a part lacks; none if it has all.
  package static func ofLabels(leftOut count: Int) -> [Warning] {
    guard count > 0 else { return [] }
    return [
      Warning(
        code: "labels_left_out",
        detail:
          "\(Words.count(count, "track")) of labels \(count == 1 ? "is" : "are") left out: the recording's tracks "
          + "have too many labels to copy all of them.")
    ]
  }

  /// Says that a part has another format than its source, which can't be written again without loss.
  package static func ofPart(of container: String, _ codec: String, writtenAs target: AudioFormat) -> Warning {
    Warning(
      code: "format_changed",
      detail: "Sound of \(container) with \(codec) can't be written again without loss: the part is "
        + "\(target.container.rawValue) with \(target.codec.name).")
  }
}
