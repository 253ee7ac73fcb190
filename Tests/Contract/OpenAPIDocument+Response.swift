import Foundation

extension OpenAPIDocument {
  /// Returns a response's violations of the contract, each as a sentence with the place.
  ///
  /// `path` is concrete and without a query, or a template. HEAD is checked against GET's description, without a body.
  /// Header names are compared without regard to case; headers that the contract doesn't name are ignored. An
  /// undescribed status counts as described by `default` from 400 up, and is a violation below.
  public func validate(
    method: String, path: String, status: Int, contentType: String?, headers: [String: String], body: Data
  ) throws -> [String] {
    let isHead = method.uppercased() == "HEAD"
    guard let template = template(of: path), let item = root["paths"]?[template],
      let operation = item[method.lowercased()] ?? (isHead ? item["get"] : nil)
    else { return ["\(method) \(path): the contract has no such operation"] }
    let responses = operation["responses"]
    guard let entry = responses?["\(status)"] ?? (status >= 400 ? responses?["default"] : nil) else {
      return ["\(method) \(template): status \(status) is not described"]
    }
    let response = try resolved(entry)
    let violations =
      try headerViolations(response, headers)
      + contentViolations(response, contentType: contentType, body: body, hasBody: !isHead)
    return violations.map { "\(method) \(template) \(status): \($0)" }
  }

  private func headerViolations(_ response: Node, _ headers: [String: String]) throws -> [String] {
    try (response["headers"]?.members ?? []).flatMap { member -> [String] in
      let header = try resolved(member.value)
      let given = headers.first { $0.key.lowercased() == member.name.lowercased() }?.value
      guard let given else {
        return header["required"]?.isTrue ?? false ? ["the header \(member.name) is missing"] : []
      }
      guard let schema = header["schema"] else { return [] }
      let value = try Self.typed(given, by: resolved(schema))
      return try SchemaValidator(self).violations(of: value, schema: schema, at: "header \(member.name)")
    }
  }

  /// Converts a header's text to a value for its schema.
  private static func typed(_ text: String, by schema: Node) -> Node {
    switch schema["type"]?.text {
    case "integer", "number": Double(text).map(Node.number) ?? .string(text)
    case "boolean": text == "true" ? .bool(true) : text == "false" ? .bool(false) : .string(text)
    default: .string(text)
    }
  }

  private func contentViolations(
    _ response: Node, contentType: String?, body: Data, hasBody: Bool
  ) throws -> [String] {
    let described = response["content"]?.members ?? []
    guard !described.isEmpty else {
      return body.isEmpty ? [] : ["a body of \(body.count) bytes where none is described"]
    }
    guard let contentType else { return ["there is no Content-Type"] }
    let type = contentType.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    guard let media = described.first(where: { Self.matches($0.name, type) }) else {
      return ["the Content-Type “\(type)” is not among \(described.map(\.name).joined(separator: ", "))"]
    }
    guard hasBody else { return body.isEmpty ? [] : ["HEAD is answered with a body"] }
    guard let schema = media.value["schema"], type == "application/json" || type.hasSuffix("+json") else { return [] }
    guard let value = try? Node(json: body) else { return ["the body is not JSON"] }
    return try SchemaValidator(self).violations(of: value, schema: schema, at: "$")
  }

  /// Whether a media range of the contract (`audio/*`) covers a type.
  private static func matches(_ range: String, _ type: String) -> Bool {
    range == "*/*" || range.lowercased() == type
      || range.hasSuffix("/*") && type.hasPrefix(range.dropLast().lowercased())
  }

  /// Returns the violations of a request's JSON body against the operation's schema. `path` is a template.
  public func requestViolations(method: String, path: String, body: Data) throws -> [String] {
    guard let operation = root["paths"]?[path]?[method.lowercased()], let entry = operation["requestBody"],
      let schema = try resolved(entry)["content"]?["application/json"]?["schema"]
    else { return ["\(method) \(path): the contract has no JSON body"] }
    guard let value = try? Node(json: body) else { return ["the body is not JSON"] }
    return try SchemaValidator(self).violations(of: value, schema: schema, at: "$")
  }
}
