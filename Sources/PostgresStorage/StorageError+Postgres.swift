import Storage

extension StorageError {
  /// Converts an error of PostgreSQL into what the catalog's callers know.
  init(_ error: PostgresError) {
    switch error {
    case .cannotConnect(let reason): self = .unreachable(detail: reason)
    case .connectionLost(_, let reason): self = .unreachable(detail: reason)
    case .libraryMissing(let file, let package, let reason):
      self = .unreachable(detail: "\(file) (Debian's package \(package)) can't be loaded: \(reason)")
    case .invalidAddress(let fault): self = .unreachable(detail: "the database's URL can't be used: \(fault)")
    case .unsupportedServer(let version):
      self = .unreachable(detail: "PostgreSQL \(version / 10_000) is too old; 15 is needed")
    case .wrongEncoding(let encoding):
      self = .unreachable(detail: "the database has the encoding \(encoding), and UTF8 is needed")
    case .sharedSession: self = .unreachable(detail: "a pooler gives each transaction another session")
    case .closed: self = .unreachable(detail: "the pool is closed")
    case .noFreeConnection: self = .busy
    case .outcomeUnknown: self = .outcomeUnknown
    case .newerSchema(let version, _, _): self = .newerSchema(path: "PostgreSQL, schema \(version)")
    case .differentMigration(let number, let name):
      self = .corrupt(column: "schema_migrations.name", value: "\(number) \(name)")
    case .unsupportedType(let column, let type): self = .corrupt(column: column, value: "type \(type)")
    case .nulInText: self = .server(state: "22021", message: "U+0000 in a text")
    case .statement(let failure): self = Self.statement(failure)
    }
  }

  private static func statement(_ failure: PostgresFailure) -> StorageError {
    switch failure.sqlState {
    case "53100": .diskFull
    // The last of several tries, or a lock that wasn't released in time.
    case "40001", "40P01", "55P03", "57014": .busy
    case "25006": .unreachable(detail: failure.message)
    default: .server(state: failure.sqlState, message: failure.message)
    }
  }
}
