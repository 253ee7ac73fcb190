import Foundation

/// Any JSON value, for inspecting answers. A missing member is `.absent`, unlike `.null`.
enum JSON: Equatable {
  case absent, null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  /// Without a decoder, as in `Contract`.
  init(_ bytes: [UInt8]) throws {
    self.init(try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed))
  }

  private init(_ value: Any) {
    switch value {
    case let members as [String: Any]: self = .object(members.mapValues { JSON($0) })
    case let values as [Any]: self = .array(values.map { JSON($0) })
    case let value as String: self = .string(value)
    case let value as NSNumber:
      self =
        unsafe value.objCType.pointee == CChar(UInt8(ascii: "c")) ? .bool(value.boolValue) : .number(value.doubleValue)
    default: self = .null
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
