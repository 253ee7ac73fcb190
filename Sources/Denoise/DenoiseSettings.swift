/// The rule that determines the gain of each bin, or no rule.
package enum DenoiseMethod: String, Codable, Sendable, CaseIterable {
  /// The log-spectral amplitude estimator of Ephraim and Malah, the best of those measured.
  case mmseLSA = "mmse_lsa"
  /// The Wiener gain on the same a-priori SNR: smoother residual noise, a little less speech.
  case wiener
  /// Power subtraction after Berouti (1979): the classic method, with its musical noise.
  case spectralSubtraction = "spectral_subtraction"
  /// A trained network for speech, outside this module, guided by MMSE-LSA.
  case voice
  /// No noise is removed; the sound is only edited.
  case editOnly = "none"
}

/// The settings that a listener can choose.
package struct DenoiseSettings: Codable, Sendable, Equatable {
  /// Which of the two parts of the sound to return. Their sum is the original.
  package enum Output: String, Codable, Sendable, CaseIterable {
    /// The sound with the noise reduced.
    case denoised
    /// The part that was removed, for listening.
    case residue
  }

  /// The gain rule; MMSE-LSA by default.
  package var method: DenoiseMethod
  /// Maximum reduction in dB, 0 … 60: 12 is gentle, 18 natural, 25 strong, and 0 leaves the sound unchanged. Values
  /// outside the range are clamped.
  package var reductionDB: Double
  /// Factor applied to the noise profile's power, 0.5 … 2: values over 1 treat more of the sound as noise. Values
  /// outside the range are clamped.
  package var sensitivity: Double
  /// The part of the sound to return; the denoised sound by default.
  package var output: Output
  /// Which channels share one gain; nil for the default, which depends on their number.
  package var link: ChannelLink?

  /// When noise that changes is followed; nil, the default, if the noise is what was learned.
  package var adaptation: NoiseAdaptation?

  private enum CodingKeys: String, CodingKey {
    case method, sensitivity, output, link
    case adaptation = "adapt"
    case reductionDB = "reduction"
  }

  /// Creates settings. The defaults are MMSE-LSA, 18 dB, sensitivity 1, the denoised sound, and the usual
  /// link.
  package init(
    method: DenoiseMethod = .mmseLSA, reductionDB: Double = 18, sensitivity: Double = 1, output: Output = .denoised,
    link: ChannelLink? = nil, adaptation: NoiseAdaptation? = nil
  ) {
    self.adaptation = adaptation
    self.method = method
    self.reductionDB = reductionDB
    self.sensitivity = sensitivity
    self.output = output
    self.link = link
  }
}
