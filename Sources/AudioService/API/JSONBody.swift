import HTTP

/// The members of a client's JSON object. A handler declares the known members in advance, so that a typo is reported
/// before any other error and never ignored.
struct JSONMembers {
  /// The names of members, each with the member names of its nested object; empty if the member isn't an object.
  typealias Known = [String: [String]]

  private let members: [String: JSONValue]
  private let known: Known
  private let path: String

  /// Maximum size of a request's JSON body, in bytes.
  static let byteLimit = 65_536

  /// Parses the request's body; an empty one counts as `{}`. Throws if there is an unknown member.
  init(bodyOf request: HTTPRequest, upTo limit: Int = byteLimit, known: Known) async throws {
    try self.init(try await Self.bytes(of: request, upTo: limit), known: known)
  }

  /// Returns the bytes of a request's body, after checking that its head allows for JSON.
  static func bytes(of request: HTTPRequest, upTo limit: Int = byteLimit) async throws -> [UInt8] {
    try request.requireJSON()
    return try await request.body.collect(upTo: limit)
  }

  /// Parses a body that has already been read.
  init(_ bytes: [UInt8], known: Known) throws {
    self.init(try Self.object(bytes), known: known, path: "")
    try checkAllNames()
  }

  /// Checks the names of all members, and of those inside them.
  private func checkAllNames() throws {
    try checkNames()
    for (member, names) in known.sorted(by: { $0.key < $1.key }) where !names.isEmpty {
      guard case .object(let inside) = members[member] else { continue }
      try JSONMembers(inside, known: Self.known(names), path: name(of: member)).checkNames()
    }
  }

  private init(_ members: [String: JSONValue], known: Known, path: String) {
    (self.members, self.known, self.path) = (members, known, path)
  }

  private static func object(_ bytes: [UInt8]) throws -> [String: JSONValue] {
    guard !bytes.isEmpty else { return [:] }
    let value: JSONValue
    do { value = try JSONValue(parsing: bytes) } catch { throw RequestError.malformedJSON(error) }
    guard case .object(let members) = value else { throw RequestError.notAnObject }
    return members
  }

  /// Returns these names, none of which is an object.
  private static func known(_ names: [String]) -> Known { Known(uniqueKeysWithValues: names.map { ($0, []) }) }

  private func checkNames() throws {
    guard let unknown = members.keys.filter({ known[$0] == nil }).min() else { return }
    throw RequestError.unknownMember(name(of: unknown), known: known.keys.sorted())
  }

  private func name(of member: String) -> String { path.isEmpty ? member : "\(path).\(member)" }

  /// Returns the value of a member, or nil if it is missing or null.
  func value(_ member: String) -> JSONValue? {
    assert(known[member] != nil, "\(member) is read, but not among the known members")
    let value = members[member]
    return value == .null ? nil : value
  }

  /// Whether a member is given as null.
  func isNull(_ member: String) -> Bool { members[member] == .null }

  func number(_ member: String, in range: ClosedRange<Double>) throws -> Double? {
    guard let value = value(member) else { return nil }
    guard case .number(let number) = value, range.contains(number) else {
      throw invalid(member, .number(range))
    }
    return number
  }

  func flag(_ member: String) throws -> Bool? {
    guard let value = value(member) else { return nil }
    guard case .bool(let flag) = value else { throw invalid(member, .oneOf(["true", "false"])) }
    return flag
  }

  func string(_ member: String, upTo length: Int = 1000) throws -> String? {
    guard let value = value(member) else { return nil }
    guard case .string(let text) = value, !text.isEmpty, text.utf8.count <= length else {
      throw invalid(member, .text(byteLimit: length))
    }
    return text
  }

  func choice<Choice: RawRepresentable & CaseIterable>(_ member: String) throws -> Choice?
  where Choice.RawValue == String {
    guard let value = value(member) else { return nil }
    guard case .string(let text) = value, let choice = Choice(rawValue: text) else {
      throw invalid(member, .oneOf(Choice.allCases.map(\.rawValue)))
    }
    return choice
  }

  /// Returns the members of a nested object.
  func nested(_ value: JSONValue, as member: String, expecting: Expectation) throws -> JSONMembers {
    guard case .object(let members) = value else { throw invalid(member, expecting) }
    return JSONMembers(members, known: Self.known(known[member] ?? []), path: name(of: member))
  }

  /// Returns the members of a nested object that may have nested objects of its own. Throws if there is an unknown one.
  func nested(
    _ value: JSONValue, as member: String, having known: Known, expecting: Expectation
  ) throws -> JSONMembers {
    guard case .object(let inside) = value else { throw invalid(member, expecting) }
    let members = JSONMembers(inside, known: known, path: name(of: member))
    try members.checkAllNames()
    return members
  }

  /// Returns the members of each object in an array; nil if it's missing. Throws if the array has another number of
  /// elements than `count`, or one that isn't an object or has a member with another name than `names`.
  func objects(
    _ member: String, count: ClosedRange<Int>, names: [String], expecting: Expectation
  ) throws -> [JSONMembers]? {
    guard let value = value(member) else { return nil }
    guard case .array(let elements) = value, count.contains(elements.count) else { throw invalid(member, expecting) }
    return try elements.enumerated().map { index, element in
      guard case .object(let inside) = element else { throw invalid(member, expecting) }
      let members = JSONMembers(inside, known: Self.known(names), path: "\(name(of: member))[\(index)]")
      try members.checkNames()
      return members
    }
  }

  func invalid(_ member: String, _ expected: Expectation) -> RequestError {
    .invalidMember(name(of: member), expected)
  }
}
