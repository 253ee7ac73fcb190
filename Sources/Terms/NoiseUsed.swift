/// The noise that was removed: in JSON, the members of its source and `"adapted":true` or `false`, and
/// perhaps `"better":{"start":…,"end":…}`.
package struct NoiseUsed: Sendable, Equatable {
  /// Where it was learned.
  package let source: NoiseSource
  /// Whether it was tracked through the recording, instead of being what was learned; nil in rows written before
  /// there was a choice.
  package let adapted: Bool?
  /// A better region if the source holds more than noise, and there is one.
  package let better: NoiseSource.Region?

  /// Creates a description.
  package init(_ source: NoiseSource, adapted: Bool?, better: NoiseSource.Region? = nil) {
    self.source = source
    self.better = better
    self.adapted = adapted
  }
}

extension NoiseUsed: Codable {
  private enum CodingKeys: String, CodingKey {
    case adapted, better
  }

  /// Throws if the source has none of its forms.
  package init(from decoder: any Decoder) throws {
    source = try NoiseSource(from: decoder)
    let container = try decoder.container(keyedBy: CodingKeys.self)
    adapted = try container.decodeIfPresent(Bool.self, forKey: .adapted)
    better = try container.decodeIfPresent(NoiseSource.Region.self, forKey: .better)
  }

  /// Encodes the same form as `init(from:)` decodes.
  package func encode(to encoder: any Encoder) throws {
    try source.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(adapted, forKey: .adapted)
    try container.encodeIfPresent(better, forKey: .better)
  }
}
