import Foundation

/// Any JSON value, for inspecting answers. A missing member is `.absent`, unlike `.null`.
enum JSON: Decodable, Equatable {
  case absent, null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  init(_ bytes: [UInt8]) throws { self = try JSONDecoder().decode(JSON.self, from: Data(bytes)) }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Numbers first, because slices consist of them.
    if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  subscript(_ member: String) -> JSON {
    guard case .object(let members) = self else { return .absent }
    return members[member] ?? .absent
  }

  subscript(_ index: Int) -> JSON {
    guard case .array(let values) = self, values.indices.contains(index) else { return .absent }
    return values[index]
  }

  var string: String? {
    guard case .string(let value) = self else { return nil }
    return value
  }

  var double: Double? {
    guard case .number(let value) = self else { return nil }
    return value
  }

  var int: Int? { double.flatMap { Int(exactly: $0) } }

  var bool: Bool? {
    guard case .bool(let value) = self else { return nil }
    return value
  }

  var array: [JSON]? {
    guard case .array(let values) = self else { return nil }
    return values
  }

  var integers: [Int]? { array.map { $0.compactMap(\.int) } }
  var members: [String]? {
    guard case .object(let members) = self else { return nil }
    return members.keys.sorted()
  }
}
