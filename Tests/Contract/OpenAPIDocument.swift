import Foundation

/// The contract: the repository's openapi.yaml, in the form that tests need.
public struct OpenAPIDocument: Sendable {
  let root: Node

  /// Loads openapi.yaml from the nearest folder above this source file that has one.
  public init() throws {
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/" {
      let file = folder.appendingPathComponent("openapi.yaml")
      if let yaml = try? String(contentsOf: file, encoding: .utf8) {
        try self.init(yaml: yaml)
        return
      }
      folder.deleteLastPathComponent()
    }
    throw ContractError.notFound
  }

  /// Creates a document from its text.
  public init(yaml: String) throws {
    root = try Node(yaml: yaml)
    guard case .object = root else { throw ContractError.notADocument }
  }

  private static let methods: Set = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]

  /// Methods in upper case and path templates, in the document's order.
  public var operations: [(method: String, path: String)] {
    (root["paths"]?.members ?? []).flatMap { path in
      path.value.members.filter { Self.methods.contains($0.name) }.map { ($0.name.uppercased(), path.name) }
    }
  }

  /// A parameter of an operation.
  public struct Parameter: Sendable, Equatable {
    /// The name in the URL or the head.
    public let name: String
    /// `path`, `query` or `header`.
    public let place: String
    /// Whether a request must have it.
    public let isRequired: Bool
  }

  /// The parameters of an operation, those of its path first. `path` is a template.
  public func parameters(method: String, path: String) throws -> [Parameter] {
    let item = root["paths"]?[path]
    let lists = [item?["parameters"], item?[method.lowercased()]?["parameters"]]
    return try lists.flatMap { $0?.elements ?? [] }.map { entry in
      let parameter = try resolved(entry)
      return Parameter(
        name: parameter["name"]?.text ?? "", place: parameter["in"]?.text ?? "",
        isRequired: parameter["required"]?.isTrue ?? false)
    }
  }

  /// The statuses that an operation describes, except `default`. `path` is a template.
  public func statuses(method: String, path: String) -> [Int] {
    (root["paths"]?[path]?[method.lowercased()]?["responses"]?.members ?? []).compactMap { Int($0.name) }
  }

  /// Returns the template that matches a concrete path, preferring literal segments to `{names}`; nil if there is none.
  public func template(of path: String) -> String? {
    let segments = path.split(separator: "/", omittingEmptySubsequences: false)
    let matching = (root["paths"]?.members ?? []).map(\.name).filter { template in
      let pattern = template.split(separator: "/", omittingEmptySubsequences: false)
      return pattern.count == segments.count
        && zip(pattern, segments).allSatisfy { Self.isName($0) ? !$1.isEmpty : $0 == $1 }
    }
    return matching.min { left, right in Self.names(in: left) < Self.names(in: right) }
  }

  private static func isName(_ segment: Substring) -> Bool { segment.hasPrefix("{") && segment.hasSuffix("}") }

  private static func names(in template: String) -> Int { template.count { $0 == "{" } }

  /// Follows `$ref`s; a value without one is returned as it is.
  func resolved(_ node: Node) throws -> Node {
    var node = node
    var steps = 0
    while let reference = node["$ref"]?.text {
      steps += 1
      guard reference.hasPrefix("#/"), steps < 20 else { throw ContractError.brokenReference(reference) }
      var target: Node? = root
      for part in reference.dropFirst(2).split(separator: "/") {
        target = target?[part.replacingOccurrences(of: "~1", with: "/").replacingOccurrences(of: "~0", with: "~")]
      }
      guard let target else { throw ContractError.brokenReference(reference) }
      node = target
    }
    return node
  }
}

extension OpenAPIDocument {
  /// The codes that a Problem may have, sorted.
  public var problemCodes: [String] {
    let code = root["components"]?["schemas"]?["Problem"]?["properties"]?["code"]
    return (code?["enum"]?.elements ?? []).compactMap(\.text).sorted()
  }
}

extension OpenAPIDocument {
  /// The query parameters of an operation that have a default, with the default as written in a query, and those that
  /// have none, with the smallest value that their schema accepts.
  public func queryDefaults(
    method: String, path: String
  ) throws -> (defaults: [(name: String, value: String)], others: [(name: String, value: String)]) {
    let item = root["paths"]?[path]
    let lists = [item?["parameters"], item?[method.lowercased()]?["parameters"]]
    let parameters = try lists.flatMap { $0?.elements ?? [] }.map(resolved).filter { $0["in"]?.text == "query" }
    var (defaults, others): ([(String, String)], [(String, String)]) = ([], [])
    for parameter in parameters {
      guard let name = parameter["name"]?.text, let schema = try parameter["schema"].map(resolved) else { continue }
      // Other keywords next to a $ref count too.
      if let value = parameter["schema"]?["default"] ?? schema["default"] {
        defaults.append((name, value.inQuery))
      } else if let value = schema["minimum"] ?? schema["enum"]?.elements.first {
        others.append((name, value.inQuery))
      }
    }
    return (defaults, others)
  }

  /// The pattern that a schema's texts match anywhere; nil if it has none.
  public func pattern(ofSchema name: String) throws -> Regex<AnyRegexOutput>? {
    try root["components"]?["schemas"]?[name]?["pattern"]?.text.map(SchemaValidator.regex)
  }

  /// The defaults of a schema's members, as a JSON object.
  public func memberDefaults(ofSchema name: String) -> String {
    let members = root["components"]?["schemas"]?[name]?["properties"]?.members ?? []
    let defaults = members.compactMap { member in
      member.value["default"].map { "\"\(member.name)\":\($0.text.map { "\"\($0)\"" } ?? $0.inQuery)" }
    }
    return "{\(defaults.joined(separator: ","))}"
  }

  /// The places where the document describes content without a schema, or a header by a constant, which code generators
  /// can't read.
  public func unreadableForGenerators() -> [String] { Self.unreadable(root, at: "#") }

  private static func unreadable(_ node: Node, at place: String) -> [String] {
    var found: [String] = []
    for member in node["content"]?.members ?? [] where (member.value["schema"]?.members ?? []).isEmpty {
      found.append("\(place)/content/\(member.name) has no schema")
    }
    if node["in"]?.text == "header", node["schema"]?["const"] != nil { found.append("\(place) is a constant") }
    for member in node.members { found += unreadable(member.value, at: "\(place)/\(member.name)") }
    for (index, element) in node.elements.enumerated() { found += unreadable(element, at: "\(place)/\(index)") }
    return found
  }
}

extension Node {
  /// The value as written in a query: lists are separated by commas.
  fileprivate var inQuery: String {
    switch self {
    case .null: "null"
    case .bool(let bool): "\(bool)"
    case .number(let number): Int(exactly: number).map(String.init) ?? "\(number)"
    case .string(let text): text.replacingOccurrences(of: "#", with: "%23")
    case .array(let elements): elements.map(\.inQuery).joined(separator: ",")
    case .object: ""
    }
  }
}
