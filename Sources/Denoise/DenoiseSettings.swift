/// How the gain of each bin is decided.
package enum DenoiseMethod: String, Sendable, CaseIterable {
  /// The log-spectral amplitude estimator of Ephraim and Malah: the best of those measured.
  case mmseLSA = "mmse_lsa"
  /// The Wiener gain on the same a-priori SNR: smoother residual noise, a little less speech.
  case wiener
  /// Power subtraction after Berouti (1979): the classic, with its musical noise.
  case spectralSubtraction = "spectral_subtraction"
}

/// What a listener can choose.
package struct DenoiseSettings: Sendable, Equatable {
  /// Which of the two halves of the sound is wanted. Added up they are the original.
  package enum Output: String, Sendable, CaseIterable {
    /// The sound with the noise turned down.
    case denoised
    /// What was taken away, to listen to.
    case residue
  }

  /// Default: MMSE-LSA.
  package var method: DenoiseMethod
  /// The most that anything is turned down, in dB, 0 … 60: 12 is gentle, 18 natural, 25 strong, 0 leaves the sound
  /// as it is. A value outside is taken for the nearer end.
  package var reductionDB: Double
  /// Factor on the noise profile's power, 0.5 … 2: over 1 takes more for noise. A value outside is taken for the
  /// nearer end.
  package var sensitivity: Double
  /// Default: the denoised sound.
  package var output: Output

  /// The defaults: MMSE-LSA, 18 dB, sensitivity 1, the denoised sound.
  package init(
    method: DenoiseMethod = .mmseLSA, reductionDB: Double = 18, sensitivity: Double = 1, output: Output = .denoised
  ) {
    self.method = method
    self.reductionDB = reductionDB
    self.sensitivity = sensitivity
    self.output = output
  }
}
