import FoundationEssentials
import Terms

extension MediaFacts {
  /// The facts as JSON, as stored in rows.
  package var json: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// Fails if `json` isn't valid or comes from an incompatible version.
  package init?(json: String) {
    guard let facts = try? JSONDecoder().decode(MediaFacts.self, from: Data(json.utf8)), facts.sampleRate > 0,
      facts.channels > 0
    else { return nil }
    self = facts
  }
}
