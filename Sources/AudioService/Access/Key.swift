// A line of the file of keys, a JSON object:
//
//   id           names the key in logs and commands: 1 to 128 visible ASCII characters
//   hash         the SHA-256 of the whole secret, 64 lower-case hexadecimal digits. The secret itself is stored nowhere
//   tenant       whose recordings the key gives access to; empty for the tenant of a service without keys
//   scopes       any of read, write, delete, admin; admin only if the tenant is empty
//   limits       optional: the tenant's limits by name, see TenantLimits
//   expires_at   optional: when the key stops working, in RFC 3339
//   note         optional: text for people
//   previous     optional: the secret before, valid until a time of its own: {"hash","expires_at"}
//
// A line of blanks is skipped. Anything else makes the whole file invalid: a key that an operator believes to be
// limited or revoked must not work because of a typo.

import Storage

/// What a secret gives access to.
package final class Key: Sendable {
  /// A secret, by its SHA-256.
  struct Secret: Sendable {
    let hash: [UInt8]
    /// When it stops working; nil for when the key does.
    var expiresAt: Timestamp?

    /// Whether `digest` is the secret's. Takes the same time wherever they differ.
    func matches(_ digest: [UInt8]) -> Bool {
      let own = hash
      return digest.span.equalsInConstantTime(own.span)
    }
  }

  /// The name in logs and commands.
  package let id: String
  /// The current secret, and the previous one if it has been given some more time.
  let secrets: [Secret]
  /// Whose recordings it gives access to.
  package let tenant: Tenant
  /// What it allows.
  package let scopes: Set<Scope>
  /// The tenant's limits that it names.
  let limits: TenantLimits
  /// When it stops working; nil for never.
  package let expiresAt: Timestamp?
  /// Text for people.
  package let note: String?

  /// Creates a key from its parts, which must be valid.
  init(
    id: String, hash: [UInt8], tenant: Tenant, scopes: Set<Scope>, limits: TenantLimits = TenantLimits(),
    expiresAt: Timestamp? = nil, note: String? = nil, previous: Secret? = nil
  ) {
    (self.id, self.tenant, self.scopes) = (id, tenant, scopes)
    (self.limits, self.expiresAt, self.note) = (limits, expiresAt, note)
    secrets = [Secret(hash: hash)] + (previous.map { [$0] } ?? [])
  }

  /// Maximum length of a secret or a token that is looked at, in bytes.
  static let mostSecretBytes = 4096

  /// Returns the digest of a secret.
  static func digest(of secret: [UInt8]) -> [UInt8] { SHA256.digest(of: secret) }

  /// Whether it has not expired.
  func isCurrent(_ clock: AccessClock) -> Bool { clock.isBefore(expiresAt) }

  /// Returns the secret with a digest; nil if the key has none, not even an expired one.
  func secret(with digest: [UInt8]) -> Secret? { secrets.first { $0.matches(digest) } }
}

extension Span<UInt8> {
  /// Whether both have the same bytes. The time depends only on the lengths.
  func equalsInConstantTime(_ other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for index in indices { difference |= self[index] ^ other[index] }
    return difference == 0
  }
}

// MARK: Reading

/// Why a line isn't a key.
enum KeyFault: Error, Equatable {
  case notJSON
  case missing(String)
  case unknown(String)
  case invalid(String, String)

  /// The end of a sentence that begins with the number of the line.
  var words: String {
    switch self {
    case .notJSON: "is not a JSON object"
    case .missing(let member): "has no “\(member)”"
    case .unknown(let member): "has an unknown member “\(member)”"
    case .invalid(let member, let expected): "has a “\(member)” that is not \(expected)"
    }
  }
}

extension Key {
  private static let members: Set<String> = [
    "id", "hash", "tenant", "scopes", "limits", "expires_at", "note", "previous",
  ]

  /// Reads a line.
  convenience init(line: [UInt8]) throws(KeyFault) {
    guard let value = try? JSONValue(parsing: line), case .object(let object) = value else { throw .notJSON }
    if let unknown = object.keys.filter({ !Self.members.contains($0) }).min() { throw .unknown(unknown) }
    let id = try Self.text("id", object, "1 to 128 visible ASCII characters") { text in
      (1...128).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) } ? text : nil
    }
    let hash = try Self.hash(object)
    let tenant = try Self.text(
      "tenant", object, "at most \(Tenant.byteLimit) bytes without control characters", Tenant.init)
    let scopes = try Self.scopes(object, tenant)
    let expiry = try object["expires_at"].map { _ throws(KeyFault) in try Self.expiry(object) }
    let note = try object["note"].map { _ throws(KeyFault) in
      try Self.text("note", object, "a text of at most 1000 bytes") { $0.utf8.count <= 1000 ? $0 : nil }
    }
    let limits = try object["limits"].map(TenantLimits.init(json:)) ?? TenantLimits()
    let previous = try object["previous"].map(Self.previous)
    self.init(
      id: id, hash: hash, tenant: tenant, scopes: scopes, limits: limits, expiresAt: expiry, note: note,
      previous: previous)
  }

  private static func hash(_ object: [String: JSONValue]) throws(KeyFault) -> [UInt8] {
    try text("hash", object, "a SHA-256 in 64 lower-case hexadecimal digits", [UInt8].init(sha256:))
  }

  private static func expiry(_ object: [String: JSONValue]) throws(KeyFault) -> Timestamp {
    try text("expires_at", object, "a time such as 2027-01-31T12:00:00Z", Timestamp.init(rfc3339:))
  }

  private static func previous(_ value: JSONValue) throws(KeyFault) -> Secret {
    guard case .object(let object) = value, object.count == 2, object["hash"] != nil, object["expires_at"] != nil else {
      throw .invalid("previous", "an object with “hash” and “expires_at”")
    }
    return Secret(hash: try hash(object), expiresAt: try expiry(object))
  }

  private static func text<Value>(
    _ member: String, _ object: [String: JSONValue], _ expected: String, _ make: (String) -> Value?
  ) throws(KeyFault) -> Value {
    guard let value = object[member] else { throw .missing(member) }
    guard case .string(let text) = value, let made = make(text) else { throw .invalid(member, expected) }
    return made
  }

  private static func scopes(_ object: [String: JSONValue], _ tenant: Tenant) throws(KeyFault) -> Set<Scope> {
    guard let value = object["scopes"] else { throw .missing("scopes") }
    let names = Scope.allCases.map(\.rawValue).joined(separator: ", ")
    guard case .array(let elements) = value, !elements.isEmpty else {
      throw .invalid("scopes", "a list of any of \(names)")
    }
    var scopes: Set<Scope> = []
    for element in elements {
      guard case .string(let name) = element, let scope = Scope(rawValue: name), scopes.insert(scope).inserted else {
        throw .invalid("scopes", "a list of any of \(names), each once")
      }
    }
    guard !scopes.contains(.admin) || tenant == .none else {
      throw .invalid("scopes", "free of admin, which only keys of the empty tenant can have")
    }
    return scopes
  }
}

extension [UInt8] {
  /// Parses a SHA-256 in lower-case hexadecimal digits.
  init?(sha256 text: String) {
    let digits = Array(text.utf8)
    guard digits.count == 64, digits.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }) else {
      return nil
    }
    func value(_ digit: UInt8) -> UInt8 { digit < 0x3A ? digit - 0x30 : digit - 0x57 }
    self = stride(from: 0, to: 64, by: 2).map { value(digits[$0]) << 4 | value(digits[$0 + 1]) }
  }
}
