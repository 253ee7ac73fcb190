import FoundationEssentials
import HTTP

/// Any JSON value a client may send.
enum JSONValue: Decodable, Sendable, Equatable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }
}

/// Takes the members out of a client's JSON object one by one; what is left over at the end is an error.
struct JSONMembers {
  private var members: [String: JSONValue]
  private let path: String

  /// Bytes of a request's JSON body at the most.
  static let byteLimit = 65_536

  /// The request's body; an empty one counts as `{}`.
  init(bodyOf request: HTTPRequest) async throws {
    try self.init(try await request.body.collect(upTo: Self.byteLimit))
  }

  /// A body that has been read.
  init(_ bytes: [UInt8]) throws {
    guard !bytes.isEmpty else {
      self.init(members: [:], path: "")
      return
    }
    guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes)) else {
      throw Problem(.badRequest, code: "invalid_json", detail: "The body is not valid JSON; a JSON object is expected.")
    }
    guard case .object(let members) = value else {
      throw Problem(.badRequest, code: "invalid_json", detail: "The body is JSON but no object; an object is expected.")
    }
    self.init(members: members, path: "")
  }

  private init(members: [String: JSONValue], path: String) {
    self.members = members
    self.path = path
  }

  private func name(of member: String) -> String { path.isEmpty ? member : "\(path).\(member)" }

  mutating func take(_ member: String) -> JSONValue? {
    let value = members.removeValue(forKey: member)
    return value == .null ? nil : value
  }

  mutating func number(_ member: String, in range: ClosedRange<Double>) throws -> Double? {
    guard let value = take(member) else { return nil }
    guard case .number(let number) = value, range.contains(number) else {
      throw invalid(member, "a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  mutating func string(_ member: String, upTo length: Int = 1000) throws -> String? {
    guard let value = take(member) else { return nil }
    guard case .string(let text) = value, !text.isEmpty, text.utf8.count <= length else {
      throw invalid(member, "a text of 1 to \(length) bytes")
    }
    return text
  }

  mutating func choice<Choice: RawRepresentable & CaseIterable>(_ member: String) throws -> Choice?
  where Choice.RawValue == String {
    guard let value = take(member) else { return nil }
    guard case .string(let text) = value, let choice = Choice(rawValue: text) else {
      throw invalid(member, "one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  /// The members of an object inside this one.
  func nested(_ value: JSONValue, as member: String, expecting: String) throws -> JSONMembers {
    guard case .object(let members) = value else { throw invalid(member, expecting) }
    return JSONMembers(members: members, path: name(of: member))
  }

  /// Throws where a member was not taken: a typo must not pass silently.
  func end(known: String) throws {
    guard let unknown = members.keys.min() else { return }
    throw Problem(
      .badRequest, code: "unknown_member", detail: "“\(name(of: unknown))” is not known here; known are \(known).",
      parameter: name(of: unknown))
  }

  func invalid(_ member: String, _ expected: String) -> Problem {
    Problem(
      .badRequest, code: "invalid_member", detail: "“\(name(of: member))” must be \(expected).",
      parameter: name(of: member))
  }
}
