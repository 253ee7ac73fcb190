// The names in requests that identify the two parties: Host (RFC 9110 §7.2) and Origin (RFC 6454 §7).
//
//   authority   host [ ":" port ]
//   origin      scheme "://" host [ ":" port ]     or "null", for a page that has no origin to show

import Terms

/// A host and a port. Equality ignores case and an explicit default port.
struct Authority: Hashable, Sendable {
  /// In lower case, without a trailing dot or unnecessary escapes; an IPv6 address has no brackets.
  let host: String
  /// Nil if it is the scheme's default.
  let port: UInt16?
  private let isV6: Bool

  /// Parses the value of a valid Host field, or the rest of an origin after its scheme. An empty port is the default
  /// (RFC 3986 §3.2.3).
  init?(_ text: some StringProtocol, defaultPort: UInt16) {
    guard RequestHead.isHost(Array(text.utf8)[...]) else { return nil }
    let lowered = Self.decodingUnreserved(text).lowercased()
    isV6 = lowered.hasPrefix("[")
    let end = isV6 ? lowered.firstIndex(of: "]") : lowered.firstIndex(of: ":")
    var name = lowered[..<(end ?? lowered.endIndex)]
    var rest = lowered[name.endIndex...]
    if isV6 {
      name = name.dropFirst()
      rest = rest.dropFirst()
    } else if name.count > 1, name.hasSuffix(".") {
      name = name.dropLast()
    }
    host = String(name)
    let number = UInt16(rest.dropFirst())
    port = number == defaultPort ? nil : number
  }

  var text: String { (isV6 ? "[\(host)]" : host) + (port.map { ":\($0)" } ?? "") }

  /// Decodes escapes of unreserved characters: `%6c` is `l` (RFC 3986 §6.2.2.2). Necessary escapes stay.
  private static func decodingUnreserved(_ text: some StringProtocol) -> String {
    guard text.utf8.contains(ASCII.percent) else { return String(text) }
    let bytes = Array(text.utf8)
    var decoded: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == ASCII.percent, index + 2 < bytes.count, let high = Hexadecimal.value(bytes[index + 1]),
        let low = Hexadecimal.value(bytes[index + 2]), URIEncoding.isUnreserved(high << 4 | low)
      {
        decoded.append(high << 4 | low)
        index += 3
      } else {
        decoded.append(bytes[index])
        index += 1
      }
    }
    return String(decoding: decoded, as: UTF8.self)
  }

  /// Whether the host always means this machine: `localhost` and its subdomains (RFC 6761 §6.3), 127.0.0.0/8, ::1.
  var isLoopback: Bool {
    if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || host == "0:0:0:0:0:0:0:1" { return true }
    return isIPv4 && host.hasPrefix("127.")
  }

  /// Whether the host is an address, which can't be made to resolve elsewhere.
  var isAddress: Bool { isV6 || isIPv4 }

  private var isIPv4: Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4
      && parts.allSatisfy { part in (1...3).contains(part.utf8.count) && part.utf8.allSatisfy(ASCII.isDigit) }
      && parts.allSatisfy { UInt8($0) != nil }
  }
}

/// The origin of a web page.
package struct Origin: Hashable, Sendable {
  let scheme: String
  let authority: Authority

  /// Scheme, host, and port if it isn't the scheme's default.
  var text: String { scheme + "://" + authority.text }

  var defaultPort: UInt16 { scheme == "https" ? 443 : 80 }

  /// Parses `http://…` or `https://…` with a host and an optional port. Fails for anything else: `null`, a path, a
  /// list.
  package init?(_ text: String) {
    let lowered = text.lowercased()
    guard let scheme = ["http", "https"].first(where: { lowered.hasPrefix($0 + "://") }) else { return nil }
    self.scheme = scheme
    guard
      let authority = Authority(text.dropFirst(scheme.utf8.count + 3), defaultPort: scheme == "https" ? 443 : 80)
    else { return nil }
    self.authority = authority
  }
}

/// The origins whose pages may use the service.
package enum AllowedOrigins: Sendable, Equatable {
  /// Any page at all: `*`.
  case any
  /// Only these origins.
  case only(Set<Origin>)

  /// The origins as a source list of a Content-Security-Policy (CSP 3 §2.3.1).
  package var sourceList: String {
    switch self {
    case .any: "*"
    case .only(let origins): origins.isEmpty ? "'none'" : origins.map(\.text).sorted().joined(separator: " ")
    }
  }

  func contains(_ text: String) -> Bool {
    switch self {
    case .any: true
    case .only(let origins): Origin(text).map(origins.contains) ?? false
    }
  }
}
