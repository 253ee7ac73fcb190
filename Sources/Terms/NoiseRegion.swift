/// A part of a recording that apparently contains only noise.
package struct NoiseRegion: Sendable, Equatable, Codable {
  /// Start, in seconds.
  package let start: Double
  /// End, in seconds.
  package let end: Double
  /// 10 log₁₀ of the mean square of all channels, in dB of full scale.
  package let level: Double
  /// How steady and quiet the noise is, 0 … 1. A second of white noise scores about 1; anything below 0.4 isn't
  /// considered noise.
  package let score: Double

  /// Creates a region.
  /// - Parameters:
  ///   - start: in seconds.
  ///   - end: in seconds, after `start`.
  ///   - level: in dB of full scale.
  ///   - score: 0 … 1.
  package init(start: Double, end: Double, level: Double, score: Double) {
    self.start = start
    self.end = end
    self.level = level
    self.score = score
  }
}
