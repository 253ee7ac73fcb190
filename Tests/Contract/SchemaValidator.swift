import Foundation

// The part of JSON Schema 2020-12 that the contract needs:
//
//   any        $ref (other keywords next to it count too), type (one or several), enum, const,
//              oneOf, anyOf, allOf, not
//   objects    properties, required, additionalProperties (false or a schema), dependentRequired
//   arrays     items, minItems, maxItems
//   numbers    minimum, maximum, exclusiveMinimum, exclusiveMaximum
//   texts      pattern, minLength, maxLength, format (date-time and uuid are checked, others ignored)
//
// Annotations are ignored. Any other keyword is a violation, so that nothing in the contract goes unchecked unnoticed.

/// Validates values against schemas.
struct SchemaValidator {
  private let document: OpenAPIDocument

  init(_ document: OpenAPIDocument) { self.document = document }

  private static let annotations: Set = [
    "$comment", "title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly",
    "contentMediaType", "contentEncoding",
  ]

  /// Returns the violations of `value`; `place` is its JSON path.
  func violations(of value: Node, schema: Node, at place: String) throws -> [String] {
    if schema == .bool(true) { return [] }
    guard case .object(let keywords) = schema else { return ["\(place): nothing is allowed here"] }
    return try keywords.flatMap { try check(value, $0.name, $0.value, schema, place) }
  }

  private func check(_ value: Node, _ keyword: String, _ rule: Node, _ schema: Node, _ place: String) throws -> [String]
  {
    switch keyword {
    case "$ref":
      return try violations(
        of: value, schema: document.resolved(.object([.init(name: "$ref", value: rule)])), at: place)
    case "type":
      let allowed = rule.text.map { [$0] } ?? rule.elements.compactMap(\.text)
      return fails(
        value.types.isDisjoint(with: allowed), place, "is \(value.brief), not \(allowed.joined(separator: " or "))")
    case "enum":
      return fails(!rule.elements.contains { $0.equals(value) }, place, "\(value.brief) is none of the values listed")
    case "const": return fails(!rule.equals(value), place, "is \(value.brief), not \(rule.brief)")
    case "allOf": return try rule.elements.flatMap { try violations(of: value, schema: $0, at: place) }
    case "anyOf", "oneOf": return try checkChoices(value, keyword, rule.elements, place)
    case "not":
      return fails(try violations(of: value, schema: rule, at: place).isEmpty, place, "is what it must not be")
    case "properties", "required", "additionalProperties", "dependentRequired":
      guard case .object(let members) = value else { return [] }
      return try checkObject(value, members, keyword, rule, schema, place)
    case "items", "minItems", "maxItems":
      guard case .array(let elements) = value else { return [] }
      return try checkArray(elements, keyword, rule, place)
    case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
      guard let number = value.number, let limit = rule.number else { return [] }
      let holds =
        switch keyword {
        case "minimum": number >= limit
        case "maximum": number <= limit
        case "exclusiveMinimum": number > limit
        default: number < limit
        }
      return fails(!holds, place, "\(number) breaks \(keyword) \(limit)")
    case "pattern", "minLength", "maxLength", "format":
      guard let text = value.text else { return [] }
      return try checkText(text, keyword, rule, place)
    default:
      return fails(!Self.annotations.contains(keyword), place, "the schema's keyword “\(keyword)” is not understood")
    }
  }

  private func fails(_ isBroken: Bool, _ place: String, _ complaint: @autoclosure () -> String) -> [String] {
    isBroken ? ["\(place): \(complaint())"] : []
  }

  private func checkChoices(_ value: Node, _ keyword: String, _ schemas: [Node], _ place: String) throws -> [String] {
    let failures = try schemas.map { try violations(of: value, schema: $0, at: place) }
    let fitting = failures.count { $0.isEmpty }
    if fitting == 1 || (fitting > 1 && keyword == "anyOf") { return [] }
    if fitting > 1 { return ["\(place): fits \(fitting) of the schemas of oneOf"] }
    return ["\(place): fits none of the schemas of \(keyword)"] + failures.joined()
  }

  private func checkObject(
    _ value: Node, _ members: [Node.Member], _ keyword: String, _ rule: Node, _ schema: Node, _ place: String
  ) throws -> [String] {
    switch keyword {
    case "properties":
      return try rule.members.flatMap { property in
        try value[property.name].map {
          try violations(of: $0, schema: property.value, at: "\(place).\(property.name)")
        } ?? []
      }
    case "required":
      return rule.elements.compactMap(\.text).filter { value[$0] == nil }.map { "\(place).\($0): is missing" }
    case "dependentRequired":
      return rule.members.filter { value[$0.name] != nil }.flatMap { cause in
        cause.value.elements.compactMap(\.text).filter { value[$0] == nil }.map {
          "\(place).\($0): is missing beside \(cause.name)"
        }
      }
    default:
      let known = Set((schema["properties"]?.members ?? []).map(\.name))
      return try members.filter { !known.contains($0.name) }.flatMap { member in
        rule == .bool(false)
          ? ["\(place).\(member.name): is not described"]
          : try violations(of: member.value, schema: rule, at: "\(place).\(member.name)")
      }
    }
  }

  private func checkArray(_ elements: [Node], _ keyword: String, _ rule: Node, _ place: String) throws -> [String] {
    switch keyword {
    case "items":
      return try elements.enumerated().flatMap { try violations(of: $1, schema: rule, at: "\(place)[\($0)]") }
    case "minItems":
      return fails(Double(elements.count) < rule.number ?? 0, place, "has \(elements.count) elements only")
    default: return fails(Double(elements.count) > rule.number ?? 0, place, "has \(elements.count) elements")
    }
  }

  private func checkText(_ text: String, _ keyword: String, _ rule: Node, _ place: String) throws -> [String] {
    let length = Double(text.unicodeScalars.count)
    switch keyword {
    case "pattern":
      return fails(
        try text.firstMatch(of: Self.regex(rule.text ?? "")) == nil, place, "“\(text)” breaks the pattern \(rule.brief)"
      )
    case "minLength": return fails(length < rule.number ?? 0, place, "“\(text)” is too short")
    case "maxLength": return fails(length > rule.number ?? 0, place, "“\(text)” is too long")
    default: return fails(!Self.isOfFormat(text, rule.text ?? ""), place, "“\(text)” is no \(rule.text ?? "")")
    }
  }

  /// A pattern of JSON Schema, which is about code points.
  static func regex(_ pattern: String) throws -> Regex<AnyRegexOutput> {
    try Regex(pattern).matchingSemantics(.unicodeScalar)
  }

  private static func isOfFormat(_ text: String, _ format: String) -> Bool {
    switch format {
    case "date-time": text.wholeMatch(of: /\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)/) != nil
    case "uuid": UUID(uuidString: text) != nil
    default: true
    }
  }
}

extension Node {
  /// A short description of the value.
  fileprivate var brief: String {
    switch self {
    case .null: "null"
    case .bool(let bool): "\(bool)"
    case .number(let number): Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    case .string(let text): "“\(text.prefix(60))”"
    case .array(let elements): "an array of \(elements.count)"
    case .object(let members): "an object of \(members.map(\.name).joined(separator: ", "))"
    }
  }
}
