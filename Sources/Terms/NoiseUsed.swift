/// The noise that was removed: in JSON, the members of its source and `"adapted":true` or `false`.
package struct NoiseUsed: Sendable, Equatable {
  /// Where it was learned.
  package let source: NoiseSource
  /// Whether it was tracked through the recording, instead of being what was learned; nil in rows written before
  /// there was a choice.
  package let adapted: Bool?

  /// Creates a description.
  package init(_ source: NoiseSource, adapted: Bool?) {
    self.source = source
    self.adapted = adapted
  }
}

extension NoiseUsed: Codable {
  private enum CodingKeys: String, CodingKey {
    case adapted
  }

  /// Throws if the source has none of its forms.
  package init(from decoder: any Decoder) throws {
    source = try NoiseSource(from: decoder)
    adapted = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Bool.self, forKey: .adapted)
  }

  /// Encodes the same form as `init(from:)` decodes.
  package func encode(to encoder: any Encoder) throws {
    try source.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(adapted, forKey: .adapted)
  }
}
