import HTTP

/// The members of a client's JSON object, of which a handler says beforehand which there are: a typo is told before
/// anything else that may be wrong, and never passes silently.
struct JSONMembers {
  /// The names of members; behind each, those in the object that the member is, empty where it is none.
  typealias Known = [String: [String]]

  private let members: [String: JSONValue]
  private let known: Known
  private let path: String

  /// Bytes of a request's JSON body at the most.
  static let byteLimit = 65_536

  /// The request's body; an empty one counts as `{}`. Throws where there is a member that is not known.
  init(bodyOf request: HTTPRequest, known: Known) async throws {
    try self.init(try await Self.bytes(of: request), known: known)
  }

  /// The bytes of a request's body, once its head says nothing else than that they are JSON.
  static func bytes(of request: HTTPRequest) async throws -> [UInt8] {
    try request.requireJSON()
    return try await request.body.collect(upTo: byteLimit)
  }

  /// A body that has been read.
  init(_ bytes: [UInt8], known: Known) throws {
    self.init(try Self.object(bytes), known: known, path: "")
    try checkNames()
    for (member, names) in known.sorted(by: { $0.key < $1.key }) where !names.isEmpty {
      guard case .object(let inside) = members[member] else { continue }
      try JSONMembers(inside, known: Self.known(names), path: member).checkNames()
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

  /// Names of which none is an object's.
  private static func known(_ names: [String]) -> Known { Known(uniqueKeysWithValues: names.map { ($0, []) }) }

  private func checkNames() throws {
    guard let unknown = members.keys.filter({ known[$0] == nil }).min() else { return }
    throw RequestError.unknownMember(name(of: unknown), known: known.keys.sorted())
  }

  private func name(of member: String) -> String { path.isEmpty ? member : "\(path).\(member)" }

  /// nil where the member is left out or null.
  func value(_ member: String) -> JSONValue? {
    assert(known[member] != nil, "\(member) is read, but not among the known members")
    let value = members[member]
    return value == .null ? nil : value
  }

  func number(_ member: String, in range: ClosedRange<Double>) throws -> Double? {
    guard let value = value(member) else { return nil }
    guard case .number(let number) = value, range.contains(number) else {
      throw invalid(member, .number(range))
    }
    return number
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

  /// The members of the object that a member is.
  func nested(_ value: JSONValue, as member: String, expecting: Expectation) throws -> JSONMembers {
    guard case .object(let members) = value else { throw invalid(member, expecting) }
    return JSONMembers(members, known: Self.known(known[member] ?? []), path: name(of: member))
  }

  func invalid(_ member: String, _ expected: Expectation) -> RequestError {
    .invalidMember(name(of: member), expected)
  }
}
