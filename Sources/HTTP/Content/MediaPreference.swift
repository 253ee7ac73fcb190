// Proactive negotiation (RFC 9110 §12.4.2, §12.5.1):
//
//   Accept   #( media-range [ weight ] )      media-range  type "/" subtype, type "/*" or "*/*", with parameters
//   weight   ";" "q=" qvalue                  qvalue  "0" [ "." 0*3DIGIT ] or "1" [ "." 0*3("0") ]
//
// The most specific range that matches a type gives its weight; a weight of 0 excludes the type. A type that no range
// matches isn't excluded, so a client that lists only its favorites still gets an answer (§12.5.1).

extension HTTPRequest {
  /// Returns the type that the client prefers, or nil if it excludes them all. The first of `types` is the default for
  /// clients that state no preference.
  ///
  /// Among types of equal weight, the one that matches a more specific range wins, then the one the client lists first.
  package func preferredType(_ types: [String]) -> String? {
    guard fields.contains("Accept") else { return types.first }
    let ranges = fields.list("Accept").map(WeightedName.init)
    let wishes = types.map { type in (type, Wish(type, ranges)) }
    let wanted = wishes.filter { $0.1.map { $0.weight > 0 } ?? false }
    if let best = wanted.max(by: { left, right in left.1.precedes(right.1) }) { return best.0 }
    guard let standard = wishes.first, standard.1 == nil else { return nil }
    return standard.0
  }
}

/// What Accept specifies for one type.
private struct Wish {
  let weight: Int
  /// 2 for the type itself, 1 for `type/*`, 0 for `*/*`.
  let specificity: Int
  /// The position of the range in the list.
  let position: Int

  /// Fails if no range matches the type.
  init?(_ type: String, _ ranges: [WeightedName]) {
    let group = type.prefix { $0 != "/" }
    let names = ["*/*", "\(group)/*", type]
    for specificity in names.indices.reversed() {
      guard let position = ranges.firstIndex(where: { $0.name == names[specificity] }) else { continue }
      (weight, self.specificity, self.position) = (ranges[position].weight, specificity, position)
      return
    }
    return nil
  }
}

extension Wish? {
  /// Whether the other is preferred.
  fileprivate func precedes(_ other: Wish?) -> Bool {
    guard let left = self, let right = other else { return self == nil && other != nil }
    return (left.weight, left.specificity, -left.position) < (right.weight, right.specificity, -right.position)
  }
}

/// An element of Accept or Accept-Encoding.
struct WeightedName {
  /// In lower case.
  let name: String
  /// In thousandths; 0 if it can't be parsed.
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
      return thousandths(text.dropFirst(2)) ?? 0
    }
    return 1000
  }

  /// Returns nil for anything but a qvalue.
  private static func thousandths(_ text: Substring) -> Int? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts[0] == "0" || parts[0] == "1" else { return nil }
    let digits = parts.count == 2 ? parts[1] : ""
    guard digits.utf8.count <= 3, digits.utf8.allSatisfy(ASCII.isDigit) else { return nil }
    let padded = digits + String(repeating: "0", count: 3 - digits.utf8.count)
    guard let fraction = Int(padded) else { return nil }
    let weight = (parts[0] == "1" ? 1000 : 0) + fraction
    return weight <= 1000 ? weight : nil
  }
}
