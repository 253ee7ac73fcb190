import Denoise

/// Where the noise profile is learnt from.
package enum NoiseSource: Sendable, Equatable {
  /// Seconds of the recording in which only noise is heard.
  case region(start: Double, end: Double)
  /// The quiet quantile of every frequency over the whole recording, 0 … 1: for recordings without such a stretch. Of
  /// one that is longer than `NoiseLearner.wholeSeconds`, that many seconds spread over it stand for all.
  case quantile(Double)
  /// The best region that is found; where there is none, `usualQuantile`.
  case automatic

  /// The quantile where nobody asked for one.
  package static let usualQuantile = 0.2
  /// Regions found in a recording at the most.
  package static let regionLimit = NoiseRegionFinder.regionLimit
}

extension NoiseSource {
  /// What `automatic` comes to where these regions, best first, were found.
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
