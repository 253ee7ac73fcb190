/// The owner of recordings and everything made from them. What one tenant owns doesn't exist for any other.
package struct Tenant: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The name, as in the file of keys; empty for `none`.
  package let name: String

  /// The tenant of a service without keys, and of everything stored before there were keys.
  package static let none = Tenant(stored: "")

  /// Maximum length of a name, in bytes.
  package static let byteLimit = 128

  /// Creates a tenant. Fails if the name is longer than `byteLimit` or has control characters. The empty name is
  /// `none`.
  package init?(_ name: String) {
    guard name.utf8.count <= Self.byteLimit, name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
    self.name = name
  }

  /// Creates the tenant that a row names.
  init(stored name: String) { self.name = name }

  /// Decodes a name.
  package init(from decoder: any Decoder) throws {
    name = try decoder.singleValueContainer().decode(String.self)
  }

  /// Encodes the name.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(name)
  }

  /// The name.
  package var description: String { name }
}

/// Returns the tenant that a row of any table names.
func tenant(_ row: SQLRow) throws -> Tenant { Tenant(stored: try value(row, "tenant")) }
