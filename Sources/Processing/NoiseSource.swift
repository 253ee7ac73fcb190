import Denoise

/// Where a noise profile is learned from: in JSON `{"start":1.25,"end":2.75}` or `{"quantile":0.2}`.
package enum NoiseSource: Sendable, Equatable {
  /// Seconds of the recording in which only noise is heard.
  case region(start: Double, end: Double)
  /// The quiet quantile of every frequency over the whole recording, 0 … 1: for recordings without such a stretch. Of
  /// one that is longer than `NoiseLearner.wholeSeconds`, that many seconds spread over it stand for all.
  case quantile(Double)

  /// The quantile where nobody asked for one.
  package static let usualQuantile = 0.2
  /// Maximum number of regions found in a recording.
  package static let regionLimit = NoiseRegionFinder.regionLimit
}

extension NoiseSource: Codable {
  private enum CodingKeys: String, CodingKey {
    case start, end, quantile
  }

  /// Throws where neither is given.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if let quantile = try container.decodeIfPresent(Double.self, forKey: .quantile) {
      self = .quantile(quantile)
    } else {
      self = .region(
        start: try container.decode(Double.self, forKey: .start), end: try container.decode(Double.self, forKey: .end))
    }
  }

  /// As it is decoded.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .region(let start, let end):
      try container.encode(start, forKey: .start)
      try container.encode(end, forKey: .end)
    case .quantile(let quantile): try container.encode(quantile, forKey: .quantile)
    }
  }
}

extension NoiseSource {
  /// What to learn the noise from where these regions, best first, were found.
  package init(best regions: [NoiseRegion]) {
    self = regions.first.map { .region(start: $0.start, end: $0.end) } ?? .quantile(Self.usualQuantile)
  }

  /// Frames a region must have at the least: two analysis frames.
  package static func minimumFrames(sampleRate: Int) -> Int64 {
    2 * Int64(AnalysisFrame(sampleRate: sampleRate).length)
  }

  /// Whether the region lies in a recording of `duration` seconds. It may end up to 10 ms past it, where it is cut:
  /// times are rounded where they are shown and typed.
  package static func isRegion(start: Double, end: Double, within duration: Double) -> Bool {
    start >= 0 && start < end && start < duration && end <= duration + 0.01
  }
}
