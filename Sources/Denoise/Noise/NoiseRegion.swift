/// A stretch of a recording in which, by all signs, only noise is heard.
package struct NoiseRegion: Sendable, Equatable, Codable {
  /// Where it begins, in seconds.
  package let start: Double
  /// Where it ends, in seconds.
  package let end: Double
  /// 10 log₁₀ of the mean square of all channels, in dB of full scale.
  package let level: Double
  /// 0 … 1: how steady and how quiet it is. A second of white noise has about 1, what is just taken for noise 0.4.
  package let score: Double

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
