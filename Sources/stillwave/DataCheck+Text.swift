import Storage

extension DataCheck.Findings {
  /// The findings for a person, one per line, and how many of each kind aren't listed. `name` is what one is called.
  func lines(_ name: String) -> [String] {
    listed.map { "\(name): \(Self.shown($0.path)): \(Self.shown($0.detail))" }
      + unlisted.map { "\(name): \($0.count) more of the kind \($0.code) aren't listed" }
  }

  /// Returns a text in one line. Names may have been made by others.
  private static func shown(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
      let hidden: [Unicode.GeneralCategory] = [.control, .lineSeparator, .paragraphSeparator, .format]
      let isShown = !hidden.contains(scalar.properties.generalCategory)
      return isShown ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
    }.joined()
  }
}
