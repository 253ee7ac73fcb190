import CPostgres

/// Where a database is and how to log in: a URL such as
/// `postgres://user:password@one,two:5433/name?sslmode=verify-full`.
///
/// libpq parses it, so its parameters are possible: several hosts, `sslmode` and certificates, `passfile`, timeouts.
/// Only `target_session_attrs` is always `read-write`. libpq's environment variables (PGHOST, PGPASSWORD, …) and
/// password file fill in what the URL lacks.
/// Source: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
///
/// The description has no password. libpq's own messages about a malformed URL quote parts of it, possibly those of a
/// password with unescaped characters; therefore they are replaced by a `Fault`.
package struct PostgresAddress: Sendable, CustomStringConvertible {
  /// What is wrong with a URL.
  package enum Fault: Equatable, Sendable {
    /// It doesn't begin with `postgres://` or `postgresql://`.
    case scheme
    /// The user or password contains `@` or `/` that isn't percent-encoded.
    case unescapedCharacter
    /// A port isn't a number from 1 to 65535.
    case port
    /// `target_session_attrs` isn't `read-write`, so that the server might be one that can't be written to.
    case sessionAttributes
    /// libpq can't parse it, or has no such parameter.
    case syntax
  }

  /// The URL, with its password.
  let url: String
  private let secrets: [String]
  /// User, hosts and database, for logs.
  package let description: String

  /// Parses a URL. Loads libpq.
  ///
  /// Throws `.invalidAddress`, and `.libraryMissing` if libpq can't be loaded.
  package init(_ url: String) throws(PostgresError) {
    try Libpq.load()
    let schemes = ["postgres://", "postgresql://"]
    guard let scheme = schemes.first(where: url.hasPrefix) else { throw .invalidAddress(.scheme) }
    guard let options = Libpq.options(of: url) else { throw .invalidAddress(.syntax) }
    let hosts = options["host"] ?? options["hostaddr"] ?? ""
    // A second `@` before the parameters, or one after the hosts, is part of a user or password.
    let beforeParameters = url.dropFirst(scheme.count).prefix { $0 != "?" }
    let database = beforeParameters.drop { $0 != "/" }
    guard !hosts.contains("@"), !database.contains("@") else { throw .invalidAddress(.unescapedCharacter) }
    for port in (options["port"] ?? "").split(separator: ",") {
      guard let number = Int(port), (1...65_535).contains(number) else { throw .invalidAddress(.port) }
    }
    guard options["target_session_attrs"] ?? "read-write" == "read-write" else {
      throw .invalidAddress(.sessionAttributes)
    }
    self.url = url
    secrets = ["password", "sslpassword"].compactMap { options[$0] }.filter { !$0.isEmpty }
    let ports = options["port"].map { ":" + $0 } ?? ""
    let user = options["user"].map { $0 + "@" } ?? ""
    description = "postgres://" + user + hosts + ports + "/" + (options["dbname"] ?? "")
  }

  /// Replaces passwords in a message of libpq or the server.
  func redacted(_ message: String) -> String {
    var message = message
    while message.last?.isWhitespace == true { message.removeLast() }
    for secret in secrets {
      var parts: [Substring] = []
      var rest = message[...]
      while let range = rest.firstRange(of: secret) {
        parts.append(rest[..<range.lowerBound])
        rest = rest[range.upperBound...]
      }
      message = (parts + [rest]).joined(separator: "(password)")
    }
    return message
  }
}

/// Functions of libpq that need no connection.
enum Libpq {
  /// Loads libpq, once. Everything else in this module follows a call of this.
  static func load() throws(PostgresError) {
    if let reason = unsafe pq_load() {
      throw .libraryMissing(file: "libpq.so.5", package: "libpq5", reason: unsafe String(cString: reason))
    }
  }

  /// Returns the parameters that are set in a URL, or nil if it can't be parsed.
  static func options(of url: String) -> [String: String]? {
    guard let options = unsafe pq_parse(url, nil) else { return nil }
    defer { unsafe pq_free_options(options) }
    var found: [String: String] = [:]
    var option = unsafe options
    while let keyword = unsafe option.pointee.keyword {
      if let value = unsafe option.pointee.value {
        unsafe found[String(cString: keyword)] = unsafe String(cString: value)
      }
      unsafe option += 1
    }
    return found
  }
}
