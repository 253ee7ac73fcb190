// Determines the client that a request counts toward, by its address:
//
//   IPv4                  the address
//   IPv6                  its first 64 bits: one subscriber has them all. An IPv4-mapped address counts as IPv4
//   behind a proxy        on a connection from a trusted proxy, X-Forwarded-For names the client:
//                         `client, proxy, proxy`, where each proxy appends the address that its request came from. So
//                         the list is read from the right, past the trusted proxies; the first other address is the
//                         client's. Anything to its left is only what that client claims. Several fields are one list
//                         (RFC 9110 §5.3). If an element on the way isn't an address, or all are trusted proxies, the
//                         client is the proxy itself

import HTTP
import Jobs
import Terms
import Webhooks

extension Client {
  /// Determines the client of a request. `proxies` are trusted to name the clients they forward for.
  init(_ request: HTTPRequest, trusting proxies: [Network]) {
    self.init(peer: request.peer, forwarded: request.fields["X-Forwarded-For"], trusting: proxies)
  }

  /// Determines a client from a request's parts: `peer` is an address and port, `forwarded` all X-Forwarded-For fields
  /// as one list.
  init(peer: String, forwarded: String?, trusting proxies: [Network]) {
    guard let address = Self.address(peer) else {
      self.init(key: peer)
      return
    }
    let named = proxies.isEmpty ? nil : Self.named(by: address, forwarded, proxies)
    self.init(named ?? address)
  }

  /// Returns the address of a request's client: that which a trusted proxy names, or else the peer's, with its port.
  static func address(of request: HTTPRequest, trusting proxies: [Network]) -> String {
    guard !proxies.isEmpty, let peer = address(request.peer),
      let named = named(by: peer, request.fields["X-Forwarded-For"], proxies)
    else { return request.peer }
    return "\(named)"
  }

  /// Returns the client that a connection from an address counts toward; nil for a trusted proxy, whose connections
  /// serve many clients.
  static func connecting(from address: String, trusting proxies: [Network]) -> Client? {
    guard let found = Self.address(address) else { return Client(key: address) }
    return isTrusted(found, proxies) ? nil : Client(found)
  }

  /// Determines the client of a request; nil if that is a trusted proxy itself, because then the request could be any
  /// client's.
  static func distinct(_ request: HTTPRequest, trusting proxies: [Network]) -> Client? {
    let client = Client(request, trusting: proxies)
    guard let peer = address(request.peer), isTrusted(peer, proxies), client == Client(peer) else { return client }
    return nil
  }

  private init(_ address: NetworkAddress) {
    let kept = address.bytes.count == 4 ? 4 : 8
    self.init(key: Hexadecimal.text(address.bytes.prefix(kept)))
  }

  /// Returns the rightmost address in the list that isn't a trusted proxy. nil if the peer isn't a trusted proxy
  /// itself, or if the list has no such address.
  private static func named(
    by peer: NetworkAddress, _ forwarded: String?, _ proxies: [Network]
  ) -> NetworkAddress? {
    guard isTrusted(peer, proxies), let forwarded else { return nil }
    for element in forwarded.split(separator: ",", omittingEmptySubsequences: false).reversed() {
      guard let found = address(element.trimmingBlanks) else { return nil }
      guard isTrusted(found, proxies) else { return found }
    }
    return nil
  }

  private static func isTrusted(_ address: NetworkAddress, _ proxies: [Network]) -> Bool {
    proxies.contains { $0.contains(address) }
  }

  /// Parses `192.0.2.1`, `192.0.2.1:50312`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:50312`.
  private static func address(_ text: some StringProtocol) -> NetworkAddress? {
    guard text.utf8.count <= 64 else { return nil }
    if let plain = NetworkAddress(String(text)) { return plain.withoutMapping }
    guard text.hasPrefix("[") else {
      let parts = text.split(separator: ":", omittingEmptySubsequences: false)
      guard parts.count == 2, UInt16(parts[1]) != nil, let found = NetworkAddress(String(parts[0])) else { return nil }
      return found.bytes.count == 4 ? found : nil
    }
    guard let end = text.firstIndex(of: "]") else { return nil }
    let rest = text[text.index(after: end)...]
    guard rest.isEmpty || rest.hasPrefix(":") && UInt16(rest.dropFirst()) != nil else { return nil }
    let found = NetworkAddress(String(text[..<end].dropFirst()))
    return found?.bytes.count == 16 ? found?.withoutMapping : nil
  }
}

extension NetworkAddress {
  /// The IPv4 address inside an IPv4-mapped one (::ffff:0:0/96), or the address itself.
  fileprivate var withoutMapping: NetworkAddress {
    guard bytes.count == 16, bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]) else { return self }
    return NetworkAddress(bytes: Array(bytes[12...])) ?? self
  }
}

extension StringProtocol {
  /// The text without leading and trailing spaces and tabs.
  fileprivate var trimmingBlanks: SubSequence {
    let start = firstIndex { $0 != " " && $0 != "\t" } ?? endIndex
    let end = lastIndex { $0 != " " && $0 != "\t" }.map(index(after:)) ?? endIndex
    return self[start..<Swift.max(start, end)]
  }
}
