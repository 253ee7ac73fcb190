extension OpenAPIDocument {
  /// Returns the violations of the document's own examples and defaults against their schemas.
  public func exampleViolations() throws -> [String] { try exampleViolations(in: root, at: "#") }

  private func exampleViolations(in node: Node, at place: String) throws -> [String] {
    if case .array(let elements) = node {
      return try elements.enumerated().flatMap { try exampleViolations(in: $1, at: "\(place)/\($0)") }
    }
    var violations: [String] = []
    // Next to `schema` (parameters, media types, headers), or inside a schema itself.
    let isSchema = node["type"] != nil || node["oneOf"] != nil
    if let schema = node["schema"] ?? (isSchema ? node : nil) {
      let examples = node["examples"]
      let values =
        [node["example"], node["default"]].compactMap { $0 } + (examples?.elements ?? [])
        + (examples?.members.compactMap { $0.value["value"] } ?? [])
      violations = try values.flatMap { try SchemaValidator(self).violations(of: $0, schema: schema, at: place) }
    }
    for member in node.members where member.name != "example" && member.name != "examples" {
      violations += try exampleViolations(in: member.value, at: "\(place)/\(member.name)")
    }
    return violations
  }
}
