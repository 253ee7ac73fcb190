/// A finding about a recording or the service that a person should know of, although it stopped no work.
package struct Warning: Codable, Sendable, Equatable {
  /// A stable identifier in snake_case: "truncated".
  package var code: String
  /// A sentence for people that says what is wrong and how it was handled.
  package var detail: String

  /// Creates a warning.
  package init(code: String, detail: String) {
    self.code = code
    self.detail = detail
  }
}
