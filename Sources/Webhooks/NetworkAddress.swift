// Determines which addresses are reachable from anywhere, according to IANA's registries of special-purpose addresses
// (RFC 6890 and its updates). An address that isn't certainly public counts as private: a webhook's address comes from
// a stranger, and a call to a private one would let that stranger reach machines that trust this one.
//
//   IPv4, refused:  0/8 10/8 100.64/10 127/8 169.254/16 172.16/12 192.0.0/24 192.0.2/24 192.88.99/24 192.168/16
//                   198.18/15 198.51.100/24 203.0.113/24 224/4 240/4
//   IPv6, allowed:  2000::/3, except 2001::/23 (includes Teredo), 2001:db8::/32 and 3fff::/20
//   IPv4 in IPv6:   judged as the IPv4 address: ::ffff:0:0/96 (mapped), 64:ff9b::/96 (NAT64), 2002::/16 (6to4)

import Glibc

/// An IPv4 or IPv6 address.
package struct NetworkAddress: Hashable, Sendable {
  /// 4 or 16, in network order.
  package let bytes: [UInt8]

  /// Creates an address from its bytes; nil unless there are 4 or 16.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  /// Parses an address such as "192.0.2.1" or "2001:db8::1".
  package init?(_ text: String) {
    var bytes = [UInt8](repeating: 0, count: 16)
    if unsafe inet_pton(AF_INET, text, &bytes) == 1 {
      self.bytes = Array(bytes.prefix(4))
    } else if unsafe inet_pton(AF_INET6, text, &bytes) == 1 {
      self.bytes = bytes
    } else {
      return nil
    }
  }

  /// Whether the address is reachable from anywhere.
  var isPublic: Bool {
    if bytes.count == 4 { return !Self.privateIPv4.contains { $0.contains(self) } }
    if let embedded = embeddedIPv4 { return embedded.isPublic }
    return Self.publicIPv6.contains(self) && !Self.privateIPv6.contains { $0.contains(self) }
  }

  /// Whether the address stands for all addresses of a machine: 0.0.0.0 or ::.
  package var isUnspecified: Bool { ipv4.bytes.allSatisfy { $0 == 0 } }

  /// Whether only the machine itself can reach the address: 127.0.0.0/8, ::1, or one that is unspecified.
  package var isOfThisMachine: Bool {
    isUnspecified || ipv4.bytes.count == 4 && ipv4.bytes[0] == 127 || bytes == [UInt8](repeating: 0, count: 15) + [1]
  }

  /// The address, as an IPv4 address if it is one that is written as IPv6 (::ffff:0:0/96).
  private var ipv4: NetworkAddress { Self.mapped.contains(self) ? embeddedIPv4 ?? self : self }

  /// The IPv4 address embedded in this one.
  var embeddedIPv4: NetworkAddress? {
    if Self.mapped.contains(self) || Self.nat64.contains(self) { return NetworkAddress(bytes: Array(bytes[12...])) }
    if Self.sixToFour.contains(self) { return NetworkAddress(bytes: Array(bytes[2..<6])) }
    return nil
  }

  private static let privateIPv4 = networks(
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/4", "240.0.0.0/4")
  private static let publicIPv6 = network("2000::/3")
  private static let privateIPv6 = networks("2001::/23", "2001:db8::/32", "3fff::/20")
  private static let mapped = network("::ffff:0:0/96")
  private static let nat64 = network("64:ff9b::/96")
  private static let sixToFour = network("2002::/16")

  private static func network(_ text: String) -> Network {
    guard let network = Network(text) else { preconditionFailure("\(text) is a network") }
    return network
  }

  private static func networks(_ texts: String...) -> [Network] { texts.map(network) }
}

extension NetworkAddress: CustomStringConvertible {
  /// The address as text, such as "192.0.2.1" or "2001:db8::1".
  package var description: String {
    var text = [UInt8](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    unsafe text.withUnsafeMutableBytes { text in
      _ = unsafe inet_ntop(
        bytes.count == 4 ? AF_INET : AF_INET6, bytes, text.bindMemory(to: CChar.self).baseAddress,
        socklen_t(text.count))
    }
    return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
  }
}

/// All addresses that begin with the same bits.
package struct Network: Hashable, Sendable {
  private let address: NetworkAddress
  private let prefixLength: Int

  /// Parses a network such as "10.0.0.0/8" or "fd00::/8", or a single address.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = NetworkAddress(String(parts[0])) else { return nil }
    self.address = address
    let bits = address.bytes.count * 8
    guard parts.count == 2 else {
      prefixLength = bits
      return
    }
    guard let length = Int(parts[1]), (0...bits).contains(length) else { return nil }
    prefixLength = length
  }

  /// Whether an address has the same family and begins with the same bits.
  package func contains(_ other: NetworkAddress) -> Bool {
    guard other.bytes.count == address.bytes.count else { return false }
    return zip(address.bytes, other.bytes).enumerated().allSatisfy { index, pair in
      let bits = min(max(prefixLength - index * 8, 0), 8)
      return (pair.0 ^ pair.1) >> UInt8(8 - bits) == 0 || bits == 0
    }
  }
}

/// Decides which addresses webhooks may call.
struct WebhookNetworks: Sendable {
  /// Private networks that webhooks may call.
  let allowed: [Network]

  func permits(_ address: NetworkAddress) -> Bool {
    if address.isPublic { return true }
    return allowed.contains { network in
      network.contains(address) || address.embeddedIPv4.map(network.contains) ?? false
    }
  }
}
