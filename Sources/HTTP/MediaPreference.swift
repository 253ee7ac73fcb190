// Proactive negotiation (RFC 9110 §12.4.2, §12.5.1): Accept is a list of ranges with weights. The most specific range
// that fits a type gives its weight: the type itself, then type/*, then */*.

extension HTTPRequest {
  /// Whether the client would rather have `type` than `standard`, which it gets without a wish.
  ///
  /// It must have named `type` itself; a range such as `*/*` is no wish. Of two that weigh the same the one named first
  /// counts, and of one that is named and one that is not, the named one.
  public func prefers(_ type: String, to standard: String) -> Bool {
    let ranges = fields.list("Accept").map(WeightedName.init)
    guard let wanted = ranges.firstIndex(where: { $0.name == type }), ranges[wanted].weight > 0 else { return false }
    guard let other = ranges.firstIndex(where: { $0.name == standard }) else { return true }
    let (mine, its) = (ranges[wanted].weight, ranges[other].weight)
    return mine > its || mine == its && wanted < other
  }
}

/// An element of Accept or Accept-Encoding.
struct WeightedName {
  /// In lower case.
  let name: String
  /// In thousandths; 0 where it can't be read.
  let weight: Int

  init(_ element: String) {
    let parts = element.split(separator: ";", omittingEmptySubsequences: false)
    name = parts[0].trimmingBlanks().lowercased()
    weight = Self.weight(parts.dropFirst())
  }

  private static func weight(_ parameters: ArraySlice<Substring>) -> Int {
    for parameter in parameters {
      let text = parameter.trimmingBlanks().lowercased()
      guard text.hasPrefix("q=") else { continue }
      guard let weight = Double(text.dropFirst(2)), (0...1).contains(weight) else { return 0 }
      return Int(weight * 1000)
    }
    return 1000
  }
}
