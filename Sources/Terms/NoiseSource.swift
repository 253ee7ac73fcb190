/// Where to learn a noise profile from: in JSON, `{"start":1.25,"end":2.75}` or `{"quantile":0.2}`.
package enum NoiseSource: Sendable, Equatable {
  /// Seconds of the recording that contain only noise.
  case region(start: Double, end: Double)
  /// The quiet quantile of every frequency over the whole recording, 0 … 1, for recordings without such a region. In a
  /// long recording, some seconds spread over it stand for the whole.
  case quantile(Double)

  /// The default quantile.
  package static let usualQuantile = 0.2

  /// Creates the best source, given the regions found, best first.
  package init(best regions: [NoiseRegion]) {
    self = regions.first.map { .region(start: $0.start, end: $0.end) } ?? .quantile(Self.usualQuantile)
  }

  /// Whether the region is inside a recording of `duration` seconds. It may exceed its end by 10 ms, where it's
  /// clamped: times are rounded for display and input.
  package static func isRegion(start: Double, end: Double, within duration: Double) -> Bool {
    start >= 0 && start < end && start < duration && end <= duration + 0.01
  }
}

extension NoiseSource: Codable {
  private enum CodingKeys: String, CodingKey {
    case start, end, quantile
  }

  /// Throws if it's neither a region nor a quantile.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if let quantile = try container.decodeIfPresent(Double.self, forKey: .quantile) {
      self = .quantile(quantile)
    } else {
      self = .region(
        start: try container.decode(Double.self, forKey: .start), end: try container.decode(Double.self, forKey: .end))
    }
  }

  /// Encodes the same form as `init(from:)` decodes.
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
