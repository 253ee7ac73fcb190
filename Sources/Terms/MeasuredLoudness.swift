/// The loudness of a sound according to EBU R 128.
package struct MeasuredLoudness: Codable, Sendable, Equatable {
  /// The integrated loudness in LUFS (ITU-R BS.1770-4, gated); nil if no block of 400 ms is above −70 LUFS, or the
  /// sample rate is too low for the filters.
  package var integratedLufs: Double?
  /// The loudness range in LU (EBU Tech 3342); nil if `integratedLufs` is, or the sound is shorter than 3 s.
  package var rangeLu: Double?
  /// The highest true peak of all channels, in dB relative to full scale; nil for digital silence.
  package var truePeakDbtp: Double?

  /// Creates a value from its parts.
  package init(integratedLufs: Double?, rangeLu: Double?, truePeakDbtp: Double?) {
    (self.integratedLufs, self.rangeLu, self.truePeakDbtp) = (integratedLufs, rangeLu, truePeakDbtp)
  }
}

/// The loudness of a recording before and after it was cleaned and brought to a target.
package struct LoudnessChange: Codable, Sendable, Equatable {
  /// The integrated loudness that was asked for, in LUFS.
  package var target: Double
  /// The recording's.
  package var before: MeasuredLoudness
  /// The result's, as given to its encoder.
  package var after: MeasuredLoudness

  /// Creates a value from its parts.
  package init(target: Double, before: MeasuredLoudness, after: MeasuredLoudness) {
    (self.target, self.before, self.after) = (target, before, after)
  }
}

/// The level of the noise before and after a recording was cleaned, in dB relative to full scale (RMS, mean of the
/// channels' powers); nil for digital silence.
package struct NoiseLevels: Codable, Sendable, Equatable {
  /// In the recording.
  package var before: Double?
  /// At the same places in the cleaned sound.
  package var after: Double?

  /// Creates a value from its parts.
  package init(before: Double?, after: Double?) { (self.before, self.after) = (before, after) }
}
