import Foundation

@testable import Storage

/// Which members the messages of one version have, and of what type.
///
/// A node ignores members that it doesn't know, and reads a message whose members it can't parse as "anything may have
/// changed". So a message of another version is as good to it as one of its own if it has all that one of its own has.
struct MessageShape {
  private struct Member {
    var types: Set<String> = []
    var count = 0
  }

  /// By path, such as `.jobs[].state`; the whole message is the empty path.
  private var members: [String: Member] = [:]

  init(_ messages: [String]) throws {
    for message in messages { add(try JSONSerialization.jsonObject(with: Data(message.utf8)), at: "") }
  }

  private mutating func add(_ value: Any, at path: String) {
    members[path, default: Member()].count += 1
    let type =
      switch value {
      case is [String: Any]: "object"
      case is [Any]: "list"
      case is String: "text"
      default: "number"
      }
    members[path, default: Member()].types.insert(type)
    for (name, value) in value as? [String: Any] ?? [:] { add(value, at: path + "." + name) }
    for value in value as? [Any] ?? [] { add(value, at: path + "[]") }
  }

  /// Returns what a node misses or can't read whose own messages have this shape, in messages of the other shape.
  func complaints(about other: MessageShape) -> [String] {
    members.sorted { $0.key < $1.key }.compactMap { path, member in
      guard let now = other.members[path] else { return "\(path) is gone" }
      guard now.types.isSubset(of: member.types) else {
        return "\(path) is \(now.types.sorted()), not \(member.types.sorted())"
      }
      // Lists may be empty; members that were always there must be.
      guard !path.hasSuffix("[]"), let dot = path.lastIndex(of: ".") else { return nil }
      let owner = String(path[..<dot])
      let wasAlwaysThere = member.count == members[owner]?.count
      return wasAlwaysThere && now.count != other.members[owner]?.count ? "\(path) is sometimes missing" : nil
    }
  }

  /// Returns what this version loses of another version's message: nil if nothing, so that it has all that the message
  /// says, in the same words.
  static func loss(reading message: String) throws -> String? {
    guard let (node, parsed) = CatalogMessage.parse(message) else { return "unreadable: \(message)" }
    let before = try JSONSerialization.jsonObject(with: Data(message.utf8))
    let after = try JSONSerialization.jsonObject(with: Data(parsed.line(from: node).utf8))
    return isContained(before, in: after) ? nil : "\(message) is read as \(parsed.line(from: node))"
  }

  private static func isContained(_ value: Any, in other: Any) -> Bool {
    switch (value, other) {
    case (let value as [String: Any], let other as [String: Any]):
      value.allSatisfy { name, value in other[name].map { isContained(value, in: $0) } ?? false }
    case (let value as [Any], let other as [Any]):
      value.count == other.count && zip(value, other).allSatisfy(isContained)
    case (let value as String, let other as String): value == other
    case (let value as NSNumber, let other as NSNumber): value == other
    default: false
    }
  }
}
