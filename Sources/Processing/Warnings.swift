import AudioIO
import Terms

// A recording's warnings: each a stable code and a sentence that says what was wrong and how it was handled.

extension Warning {
  /// Returns the warnings from reading a file.
  ///
  /// - Parameters:
  ///   - map: the file's map.
  ///   - claimedFrames: the header's number of frames, if known.
  ///   - decodedFrames: the number decoded; nil if the file wasn't read to its end.
  ///   - nonFiniteSamples: samples read as 0.
  ///   - lostFrames: frames read as silence.
  ///   - excess: samples beyond full scale.
  static func ofReading(
    _ map: SoundMap, claimedFrames: Int64?, decodedFrames: Int64?, nonFiniteSamples: Int64, lostFrames: Int64,
    excess: Excess = Excess()
  ) -> [Warning] {
    var found = inHeader(map.header) + Self.found(map.findings)
    // The decoder itself may have put silence in place of missing frames.
    let missing = max(lostFrames, map.findings.missingFrames)
    if missing > 0 { found.append(.lost(missing)) }
    if let claimedFrames, let decodedFrames, claimedFrames != decodedFrames,
      !found.contains(where: { $0.code == "truncated" })
    {
      found.append(.decodedFrames(decodedFrames, claimed: claimedFrames))
    }
    if nonFiniteSamples > 0 { found.append(.nonFinite(nonFiniteSamples)) }
    return found + overFullScale(excess)
  }

  /// Returns a warning if players can't seek in the file.
  static func ofSeeking(_ map: SoundMap) -> [Warning] { map.variesInRate ? [.seeksInexactly] : [] }

  /// Returns a warning if there are samples beyond full scale.
  static func overFullScale(_ excess: Excess) -> [Warning] {
    guard excess.samples > 0 else { return [] }
    let peak = (excess.peak * 1000).rounded() / 1000
    return [
      Warning(
        code: "over_full_scale",
        detail:
          "\(excess.samples) samples are beyond full scale (±1), up to \(peak). Waveforms and files of integers hold "
          + "them to full scale; files of floats keep them.")
    ]
  }

  /// Returns the header's promises that the file doesn't keep, judging only by sizes.
  private static func inHeader(_ header: ContainerHeader) -> [Warning] {
    guard let declared = header.declaredDataBytes, let present = header.presentDataBytes else { return [] }
    if header.lengthIsUnknown {
      return [
        Warning(
          code: "length_unknown",
          detail: "The header was written before the length was known; the file is read to its end.")
      ]
    }
    guard declared > present else {
      guard header.strayBytes > 0 else { return [] }
      return [
        Warning(
          code: "bytes_left_out",
          detail:
            "The header promises \(declared) bytes of sound; \(header.strayBytes) more follow and are left out.")
      ]
    }
    return [
      Warning(
        code: "truncated",
        detail: "The header promises \(declared) bytes of sound, but the file has only \(present), which are used.")
    ]
  }

  /// Returns the contradictions between the file's bytes and its headers.
  private static func found(_ findings: SoundMap.Findings) -> [Warning] {
    var found: [Warning] = []
    if findings.streams > 1 {
      found.append(
        Warning(
          code: "chained_stream",
          detail: "The file consists of \(findings.streams) streams; all are used, one after the other."))
    }
    if findings.streamsLeftOut > 0 {
      found.append(.leftOut(findings.streamsLeftOut, seconds: findings.secondsLeftOut))
    }
    // If the header promises more frames than there are, that warning is clearer.
    let lacksFrames = findings.wrongCount.map { $0.found < $0.promised } ?? false
    if findings.lacksEnd, !lacksFrames { found.append(.endsWithin) }
    if let count = findings.wrongCount { found.append(.decodedFrames(count.found, claimed: count.promised)) }
    if findings.lacksLength { found.append(.lengthUnknown) }
    if findings.leadingBytes > 0 { found.append(.leading(findings.leadingBytes)) }
    if findings.foreignBytes > 0 {
      found.append(
        Warning(
          code: "foreign_bytes",
          detail: "\(findings.foreignBytes) bytes between the frames are not sound and are skipped."))
    }
    if findings.trailingBytes > 0 {
      found.append(
        Warning(
          code: "bytes_left_out",
          detail: "\(findings.trailingBytes) bytes after the last frame are not sound and are left out."))
    }
    return found
  }

  private static func lost(_ frames: Int64) -> Warning {
    Warning(
      code: "frames_missing",
      detail: "\(frames) frames in the middle of the file are lost and replaced by silence.")
  }

  static func leftOut(_ streams: Int, seconds: Double) -> Warning {
    let rounded = (seconds * 10).rounded() / 10
    return Warning(
      code: "streams_left_out",
      detail:
        "\(streams) of the streams in the file have another sample rate, number of channels or codec than most of "
        + "it, or can't be decoded; they are left out (\(rounded) s).")
  }

  static func leading(_ bytes: Int64) -> Warning {
    Warning(
      code: "leading_bytes",
      detail: "\(bytes) bytes before the first frame are not sound and are skipped.")
  }

  static let endsWithin = Warning(
    code: "truncated", detail: "The file ends before its sound is complete; the part that exists is used.")

  static let lengthUnknown = Warning(
    code: "length_unknown", detail: "No header states the length of the sound; the file is read to its end.")

  static func silenceLeftOut(_ seconds: Double) -> Warning {
    Warning(
      code: "silence_left_out",
      detail: "The telephone left out \((seconds * 100).rounded() / 100) s of silence, which are filled in again."
    )
  }

  static func decodedFrames(_ decoded: Int64, claimed: Int64) -> Warning {
    Warning(
      code: decoded < claimed ? "truncated" : "longer_than_claimed",
      detail: "The header promises \(claimed) frames, but \(decoded) could be decoded and are used.")
  }

  static func nonFinite(_ samples: Int64) -> Warning {
    Warning(
      code: "non_finite_samples",
      detail: "\(samples) samples are not finite numbers (NaN or infinity); they count as 0.")
  }

  /// - Parameter places: how much it is in which channels.
  static func offset(_ places: String) -> Warning {
    Warning(
      code: "dc_offset",
      detail: "The sound isn't centered around 0: its DC offset is \(places). It was removed from the result.")
  }
}
