/// Where to learn a noise profile from: in JSON, `{"start":1.25,"end":2.75}`, `{"regions":[{"start":…,"end":…},…]}`,
/// `{"profile":"…"}` or `{"quantile":0.2}`.
package enum NoiseSource: Sendable, Equatable {
  /// Seconds of the recording that contain only noise.
  package struct Region: Sendable, Equatable, Codable {
    /// In seconds.
    package let start: Double
    /// In seconds, after `start`.
    package let end: Double

    /// Creates a region.
    package init(start: Double, end: Double) { (self.start, self.end) = (start, end) }

    /// Creates a region from one that was found.
    package init(_ found: NoiseRegion) {
      start = found.frames.startSeconds(sampleRate: found.sampleRate)
      end = found.frames.endSeconds(sampleRate: found.sampleRate)
    }

    /// Returns the frames, each time rounded to the nearest one; nil if they aren't within the recording.
    ///
    /// A region may exceed the recording's end by 10 ms, where it's clamped: times are rounded for display and input.
    /// - Parameters:
    ///   - sampleRate: in Hz.
    ///   - total: the recording's frames; nil if they aren't known yet.
    package func frames(sampleRate: Int, total: Int64?) -> Range<Int64>? {
      guard start >= 0, start < end else { return nil }
      let frames = Range(start: start, end: end, sampleRate: sampleRate)
      guard let total else { return frames }
      let slack = Int64((sampleRate + 99) / 100)
      guard frames.lowerBound < total, frames.upperBound <= total + slack else { return nil }
      return frames.clamped(to: 0..<total)
    }
  }

  /// The same noise everywhere.
  case region(Region)
  /// Noise that differs from place to place: at least one region, in ascending order, without overlaps.
  case regions([Region])
  /// The quiet quantile of every frequency over the whole recording, 0 … 1, for recordings without such a region. In a
  /// long recording, some seconds spread over it stand for the whole.
  case quantile(Double)
  /// A profile that was learned before: its ID, or the name of its file.
  case profile(String)

  /// The default quantile.
  package static let usualQuantile = 0.2
  /// Maximum number of regions.
  package static let regionLimit = 32

  /// A region.
  package static func region(start: Double, end: Double) -> NoiseSource { .region(Region(start: start, end: end)) }

  /// The regions to learn from, if there are any.
  package var regions: [Region] {
    switch self {
    case .region(let region): [region]
    case .regions(let regions): regions
    case .quantile, .profile: []
    }
  }
}

extension NoiseSource: Codable {
  private enum CodingKeys: String, CodingKey {
    case regions, quantile, profile
  }

  /// Throws if it's none of the four forms.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if let quantile = try container.decodeIfPresent(Double.self, forKey: .quantile) {
      self = .quantile(quantile)
    } else if let regions = try container.decodeIfPresent([Region].self, forKey: .regions) {
      self = .regions(regions)
    } else if let profile = try container.decodeIfPresent(String.self, forKey: .profile) {
      self = .profile(profile)
    } else {
      self = .region(try Region(from: decoder))
    }
  }

  /// Encodes the same form as `init(from:)` decodes.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    switch self {
    case .region(let region): try region.encode(to: encoder)
    case .regions(let regions): try container.encode(regions, forKey: .regions)
    case .quantile(let quantile): try container.encode(quantile, forKey: .quantile)
    case .profile(let profile): try container.encode(profile, forKey: .profile)
    }
  }
}
