/// A value in a database, in the types that all engines share.
package enum SQLValue: Sendable, Equatable, CustomStringConvertible {
  case null
  /// An integer of any width, or a flag as 0 or 1.
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])

  /// Converts an argument; nil becomes NULL.
  init(argument value: (any SQLConvertible)?) { self = value?.sqlValue ?? .null }

  /// The value for error messages; of a blob, only its length.
  package var description: String {
    switch self {
    case .null: "NULL"
    case .integer(let value): "\(value)"
    case .real(let value): "\(value)"
    case .text(let value): value
    case .blob(let bytes): "\(bytes.count) bytes"
    }
  }
}

/// A type whose values can be arguments and columns.
package protocol SQLConvertible: Sendable {
  /// The value as a database has it.
  var sqlValue: SQLValue { get }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  init?(_ value: SQLValue)
}

extension SQLValue: SQLConvertible {
  /// The value as a database has it.
  package var sqlValue: SQLValue { self }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  package init?(_ value: SQLValue) { self = value }
}

extension Int64: SQLConvertible {
  /// The value as a database has it.
  package var sqlValue: SQLValue { .integer(self) }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  package init?(_ value: SQLValue) {
    guard case .integer(let number) = value else { return nil }
    self = number
  }
}

extension Int: SQLConvertible {
  /// The value as a database has it.
  package var sqlValue: SQLValue { .integer(Int64(self)) }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  package init?(_ value: SQLValue) {
    guard case .integer(let number) = value else { return nil }
    self.init(exactly: number)
  }
}

extension Double: SQLConvertible {
  /// The value as a database has it.
  package var sqlValue: SQLValue { .real(self) }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  package init?(_ value: SQLValue) {
    switch value {
    case .real(let number): self = number
    case .integer(let number): self = Double(number)
    case .null, .text, .blob: return nil
    }
  }
}

extension Bool: SQLConvertible {
  /// The value as a database has it.
  package var sqlValue: SQLValue { .integer(self ? 1 : 0) }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  package init?(_ value: SQLValue) {
    guard case .integer(let number) = value else { return nil }
    self = number != 0
  }
}

extension String: SQLConvertible {
  /// The value as a database has it.
  package var sqlValue: SQLValue { .text(self) }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  package init?(_ value: SQLValue) {
    guard case .text(let text) = value else { return nil }
    self = text
  }
}

extension [UInt8]: SQLConvertible {
  /// The value as a database has it.
  package var sqlValue: SQLValue { .blob(self) }

  /// Converts a value from a database. Fails if it has another type or is out of range.
  package init?(_ value: SQLValue) {
    guard case .blob(let bytes) = value else { return nil }
    self = bytes
  }
}
