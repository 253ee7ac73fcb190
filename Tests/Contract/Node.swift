import Foundation
import Yams

/// A JSON value, from JSON or from YAML. Members from YAML keep their order.
indirect enum Node: Sendable, Equatable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([Node])
  case object([Member])

  /// A name and its value.
  struct Member: Sendable, Equatable {
    let name: String
    let value: Node
  }

  /// The member with that name; nil if this isn't an object or has no such member.
  subscript(_ name: String) -> Node? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name == name }?.value
  }

  var members: [Member] {
    if case .object(let members) = self { members } else { [] }
  }

  var elements: [Node] {
    if case .array(let elements) = self { elements } else { [] }
  }

  var text: String? {
    if case .string(let text) = self { text } else { nil }
  }

  var number: Double? {
    if case .number(let number) = self { number } else { nil }
  }

  var isTrue: Bool { self == .bool(true) }

  /// The JSON Schema types of this value: a whole number is a `number` and an `integer`.
  var types: Set<String> {
    switch self {
    case .null: ["null"]
    case .bool: ["boolean"]
    case .number(let number): number == number.rounded() ? ["number", "integer"] : ["number"]
    case .string: ["string"]
    case .array: ["array"]
    case .object: ["object"]
    }
  }

  /// Whether two values are equal according to JSON Schema: the order of members doesn't matter.
  func equals(_ other: Node) -> Bool {
    switch (self, other) {
    case (.array(let left), .array(let right)):
      return left.count == right.count && zip(left, right).allSatisfy { $0.equals($1) }
    case (.object(let left), .object(let right)):
      return left.count == right.count && left.allSatisfy { other[$0.name]?.equals($0.value) ?? false }
    default: return self == other
    }
  }
}

extension Node {
  /// Creates a value from JSON. Without a decoder, which finds the type of each value by errors that it throws: Swift
  /// Testing notes the stack of every one.
  init(json: Data) throws { self.init(try JSONSerialization.jsonObject(with: json, options: .fragmentsAllowed)) }

  private init(_ value: Any) {
    switch value {
    case let members as [String: Any]:
      self = .object(members.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: Node($0.value)) })
    case let elements as [Any]: self = .array(elements.map { Node($0) })
    case let text as String: self = .string(text)
    case let number as NSNumber:
      self =
        unsafe number.objCType.pointee == CChar(UInt8(ascii: "c"))
        ? .bool(number.boolValue) : .number(number.doubleValue)
    default: self = .null
    }
  }
}

extension Node {
  /// Creates a value from YAML, by the rules of YAML 1.2's core schema: `yes` and `2026-11-21` are texts.
  init(yaml: String) throws {
    guard let root = try Yams.compose(yaml: yaml) else { throw ContractError.notADocument }
    self.init(root)
  }

  private init(_ node: Yams.Node) {
    switch node {
    case .mapping(let mapping):
      self = .object(mapping.map { Member(name: $0.key.scalar?.string ?? "", value: Node($0.value)) })
    case .sequence(let sequence): self = .array(sequence.map { Node($0) })
    case .scalar(let scalar): self = scalar.style == .plain ? Self.plain(scalar.string) : .string(scalar.string)
    case .alias: preconditionFailure("composing resolves aliases")
    }
  }

  private static func plain(_ text: String) -> Node {
    switch text {
    case "", "null", "~": .null
    case "true": .bool(true)
    case "false": .bool(false)
    default: Double(text).flatMap { $0.isFinite ? .number($0) : nil } ?? .string(text)
    }
  }
}

/// The reason why the contract can't be used.
public enum ContractError: Error, Equatable, Sendable {
  /// There is no openapi.yaml in any folder above this source file.
  case notFound
  /// It isn't a YAML mapping.
  case notADocument
  /// A `$ref` without a target.
  case brokenReference(String)
}
