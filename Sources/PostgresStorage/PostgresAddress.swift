import CPostgres
import Glibc

/// Where a database is and how to log in: a URL such as
/// `postgres://user:password@one,two:5433/name?sslmode=verify-full`.
///
/// libpq parses it, so its parameters are possible: several hosts, `sslmode` and certificates, `passfile`, timeouts.
/// Only `target_session_attrs` is always `read-write`. libpq's environment variables (PGHOST, PGPASSWORD, …) and
/// password file fill in what the URL lacks.
/// Source: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
///
/// Without `sslmode`, libpq would encrypt if the server offers it, and otherwise send passwords and rows in the clear.
/// So an address without it, in the URL or as PGSSLMODE, may only be a socket or a loopback address.
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
    /// There is no `sslmode`, and this host isn't a socket or a loopback address; empty if it isn't in the URL.
    case unprotected(host: String)
    /// libpq can't parse it, or has no such parameter.
    case syntax
  }

  /// The URL, with its password.
  let url: String
  private let secrets: [String]
  /// User, hosts and database, for logs.
  package let description: String

  /// Parses a URL. `variable` returns a variable of the environment. Loads libpq.
  ///
  /// Throws `.invalidAddress`, and `.libraryMissing` if libpq can't be loaded.
  package init(
    _ url: String, variable: (String) -> String? = { unsafe getenv($0).map { unsafe String(cString: $0) } }
  ) throws(PostgresError) {
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
    if let host = Self.unprotectedHost(options, variable) { throw .invalidAddress(.unprotected(host: host)) }
    self.url = url
    secrets = ["password", "sslpassword"].compactMap { options[$0] }.filter { !$0.isEmpty }
    let ports = options["port"].map { ":" + $0 } ?? ""
    let user = options["user"].map { $0 + "@" } ?? ""
    description = "postgres://" + user + hosts + ports + "/" + (options["dbname"] ?? "")
  }

  /// Returns a host that can be reached only over a network, if there is no `sslmode`; empty if a file of services
  /// names the hosts.
  private static func unprotectedHost(_ options: [String: String], _ variable: (String) -> String?) -> String? {
    func value(_ option: String, _ name: String) -> String? {
      [options[option], variable(name)].lazy.compactMap { $0 }.first { !$0.isEmpty }
    }
    guard value("sslmode", "PGSSLMODE") == nil else { return nil }
    guard value("service", "PGSERVICE") == nil else { return "" }
    func list(_ text: String?) -> [Substring] { text?.split(separator: ",", omittingEmptySubsequences: false) ?? [] }
    let (names, addresses) = (list(value("host", "PGHOST")), list(value("hostaddr", "PGHOSTADDR")))
    for index in 0..<max(names.count, addresses.count) {
      let name = index < names.count ? names[index] : ""
      // If there is one, the connection is made to it, whatever the name.
      let address = index < addresses.count && !addresses[index].isEmpty ? addresses[index] : name
      guard address.isEmpty || address.hasPrefix("/") || isLoopback(String(address)) else { return String(address) }
    }
    return nil
  }

  private static func isLoopback(_ host: String) -> Bool {
    var (four, six) = (in_addr(), in6_addr())
    if unsafe inet_pton(AF_INET, host, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
    if unsafe inet_pton(AF_INET6, host, &six) == 1 {
      return unsafe withUnsafeBytes(of: six) { unsafe $0.elementsEqual([UInt8](repeating: 0, count: 15) + [1]) }
    }
    return host.lowercased() == "localhost"
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
