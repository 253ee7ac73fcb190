import AudioIO
import Denoise
import Media
import Terms

extension Warning {
  /// Names the source's tracks that are missing from the result.
  package static func leftOut(_ tracks: CopiedTracks) -> [Warning] {
    let parts = tracks.leftOut
    guard !parts.isEmpty else { return [] }
    return [
      Warning(
        code: "tracks_left_out",
        detail: "These could not be written to the result and are left out: \(parts.joined(separator: ", ")).")
    ]
  }

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

  /// Says how a noise profile that was learned elsewhere differs from the recording that it's used for.
  static func ofProfile(_ density: NoiseDensity, sampleRate: Int, channels: Int) -> [Warning] {
    var found: [Warning] = []
    let (highest, own) = (density.highestHz, density.powerDB.count)
    // The last bin of the recording's own frames may lie a little higher than that of the profile's.
    if highest < 0.49 * Double(sampleRate) {
      found.append(
        Warning(
          code: "profile_bands",
          detail: "The noise profile ends at \(Int(highest.rounded())) Hz; nothing is removed from there to "
            + "\(sampleRate / 2) Hz."))
    }
    if own != channels {
      found.append(
        Warning(
          code: "profile_channels",
          detail: "The noise profile has \(Words.count(own, "channel")), the recording \(channels): "
            + (own == 1 ? "it is used for each of them." : "the mean of its channels is used for each.")))
    }
    return found
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

  /// Says that a result has another loudness than was asked for; nil if it is right to half a LU.
  static func ofLoudness(_ found: MeasuredLoudness, target: Double) -> Warning? {
    guard let loudness = found.integratedLufs else {
      return Warning(
        code: "loudness_missed",
        detail: "The result is too quiet or too short to have a loudness; it was left as it is.")
    }
    guard abs(loudness - target) > 0.5 else { return nil }
    return Warning(
      code: "loudness_missed",
      detail: "The result has \((loudness * 10).rounded() / 10) LUFS instead of \(target): with a true peak of at most "
        + "-1 dBTP, it can't be louder without distortion.")
  }

  /// Says that no stretch of a recording contains only noise.
  static let noiseNotFound = Warning(
    code: "noise_not_found",
    detail: "No stretch of this contains only noise: the noise is estimated from the quietest parts of each frequency, "
      + "and some of the sound may count as noise. Mark a stretch of noise if you hear one.")

  /// Says that a region holds more than noise.
  static func noiseHasSpeech(better: NoiseSource.Region) -> Warning {
    func rounded(_ seconds: Double) -> Double { (seconds * 100).rounded() / 100 }
    return Warning(
      code: "noise_has_speech",
      detail: "The noise was learned from a stretch that also holds speech or other sound, which is then removed like "
        + "noise. From \(rounded(better.start)) to \(rounded(better.end)) s, there is only noise.")
  }

  /// Says that the network would have lost much of a sound; nil if it wouldn't.
  static func ofVoice(lost: Double) -> Warning? {
    guard lost > 0.2 else { return nil }
    return Warning(
      code: "not_speech",
      detail:
        "About \(Int((100 * lost).rounded())) % of this isn't speech for the network of “voice”, which would have "
        + "removed it; the result of mmse_lsa was kept there.")
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
