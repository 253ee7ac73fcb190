import AudioIO

// The warnings of a recording, each a stable code and a sentence that says what was wrong and what was done.

extension Anomaly {
  /// What the header promises and the file doesn't hold, judged by the bytes alone.
  static func inHeader(_ header: ContainerHeader) -> [Anomaly] {
    guard let declared = header.declaredDataBytes, let present = header.presentDataBytes else { return [] }
    if header.lengthIsUnknown {
      return [
        Anomaly(
          code: "length_unknown",
          detail: "The header was written before the length was known; the file is read to its end.")
      ]
    }
    guard declared > present else { return [] }
    return [
      Anomaly(
        code: "truncated",
        detail: "The header promises \(declared) bytes of sound, the file holds \(present); what is there is used.")
    ]
  }

  /// What the bytes suggest beyond what was decoded: libsndfile stops at the first stream's end, or at a guess of it.
  ///
  /// Reads the whole file where it is MP3 or Ogg.
  static func beyond(_ decoded: Int64, of format: AudioFormat, path: String) throws(AudioIOError) -> [Anomaly] {
    switch format.container {
    case .mp3:
      let survey = try MPEGSurvey(path: path)
      // An encoder's delay and padding are not decoded: 576 to 2880 samples.
      guard survey.frames > decoded + 4 * 1152 else { return [] }
      return [survey.hasCount ? .chained : .uncounted(decoded, of: survey.frames, format.sampleRate)]
    case .ogg:
      let survey = try OggSurvey(path: path)
      if survey.isChained { return [.chained] }
      return survey.hasEnd ? [] : [.endMissing]
    default: return []
    }
  }

  private static let chained = Anomaly(
    code: "chained_stream", detail: "Several streams follow one another in the file; only the first is used.")

  private static let endMissing = Anomaly(
    code: "truncated", detail: "The stream's last page is missing; what is there is used.")

  private static func uncounted(_ decoded: Int64, of frames: Int64, _ sampleRate: Int) -> Anomaly {
    Anomaly(
      code: "header_missing",
      detail: "No header tells the file's length; only the first \(decoded / Int64(sampleRate)) s of about "
        + "\(frames / Int64(sampleRate)) s could be decoded.")
  }

  static func decodedFrames(_ decoded: Int64, claimed: Int64) -> Anomaly {
    Anomaly(
      code: decoded < claimed ? "truncated" : "longer_than_claimed",
      detail: "The header promises \(claimed) frames, \(decoded) could be decoded; these are used.")
  }

  static func nonFinite(_ samples: Int64) -> Anomaly {
    Anomaly(
      code: "non_finite_samples",
      detail: "\(samples) samples are not finite numbers (NaN or infinity); they count as 0.")
  }
}
