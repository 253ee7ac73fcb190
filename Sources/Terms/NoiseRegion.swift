/// A part of a recording that apparently contains only noise: in rows and workers' reports
/// `{"frames":[20160,44160],"level":-52.1,"sampleRate":16000,"score":0.93}`, for clients as `NoiseRegion.Timed`. Where
/// the noise changes for good, also `"span":[0,80000]`.
package struct NoiseRegion: Sendable, Equatable, Codable {
  /// The frames, at least one.
  package let frames: Range<Int64>
  /// The recording's sample rate in Hz.
  package let sampleRate: Int
  /// 10 log₁₀ of the mean square of all channels, in dB of full scale.
  package let level: Double
  /// How steady and quiet the noise is, 0 … 1. A second of white noise scores about 1; anything below `leastScore`
  /// isn't considered noise.
  package let score: Double
  /// The least score of a region that is certainly noise.
  package static let leastScore = 0.4
  /// The frames around it whose noise this is, if the recording's noise is another elsewhere.
  package let span: Range<Int64>?

  /// Creates a region.
  /// - Parameters:
  ///   - frames: at least one, from 0 on.
  ///   - sampleRate: in Hz, at least 1.
  ///   - level: in dB of full scale.
  ///   - score: 0 … 1.
  ///   - span: contains the frames.
  package init(
    _ frames: Range<Int64>, sampleRate: Int, level: Double, score: Double, span: Range<Int64>? = nil
  ) {
    precondition(frames.lowerBound >= 0 && !frames.isEmpty && sampleRate > 0, "a region has frames")
    self.span = span
    self.frames = frames
    self.sampleRate = sampleRate
    self.level = level
    self.score = score
  }

  /// Throws if it isn't a region of any recording.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    frames = try container.decode(Range<Int64>.self, forKey: .frames)
    sampleRate = try container.decode(Int.self, forKey: .sampleRate)
    level = try container.decode(Double.self, forKey: .level)
    score = try container.decode(Double.self, forKey: .score)
    span = try container.decodeIfPresent(Range<Int64>.self, forKey: .span)
    guard frames.lowerBound >= 0, !frames.isEmpty, sampleRate > 0,
      span.map({ $0.clamped(to: frames) == frames }) ?? true
    else {
      throw DecodingError.dataCorruptedError(forKey: .frames, in: container, debugDescription: "no region")
    }
  }

  /// A region as clients see it; its times lead back to the same frames.
  package struct Timed: Encodable, Sendable {
    /// In seconds.
    package let start, end: Double
    /// See `NoiseRegion`.
    package let level, score: Double
  }

  /// The region for clients.
  package var timed: Timed {
    let region = NoiseSource.Region(self)
    return Timed(start: region.start, end: region.end, level: level, score: score)
  }
}
