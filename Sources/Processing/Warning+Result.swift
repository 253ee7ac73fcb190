import Denoise
import Media
import Terms
import Workers

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

  /// Says that a recording is too short to tell its noise from its sound.
  static let tooShortForNoise = Warning(
    code: "noise_not_found",
    detail:
      "This is too short to learn its noise from, which takes 0.1 s; it was left as it is. The profile of another "
      + "recording can be used.")

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
}
