import Testing

@testable import Webhooks

@Suite struct NetworkAddressTests {
  private func address(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(text)) }

  @Test(
    "an address that only neighbors can reach is private",
    arguments: [
      "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1",
      "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1",
      "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
      "255.255.255.255", "::", "::1", "::7f00:1", "fc00::1", "fdff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1",
      "2001:db8::1", "2001::1", "2001:10::1", "3fff::1", "5f00::1", "100::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
      "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b:1::808:808", "2002:7f00:1::", "2002:a00:1::",
      "2002:c0a8:101::1", "::8.8.8.8",
    ])
  func privateAddresses(text: String) throws {
    #expect(try !address(text).isPublic)
  }

  @Test(
    "an address that anyone can reach is public",
    arguments: [
      "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.1.1.1", "128.0.0.1",
      "169.253.1.1", "169.255.1.1", "172.15.255.255", "172.32.0.1", "192.0.1.1", "192.167.1.1", "192.169.1.1",
      "198.17.1.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860::8888",
      "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
    ])
  func publicAddresses(text: String) throws {
    #expect(try address(text).isPublic)
  }

  @Test(arguments: [
    ("10.0.0.0/8", "10.9.8.7", true), ("10.0.0.0/8", "11.0.0.0", false), ("10.1.2.3/8", "10.9.8.7", true),
    ("0.0.0.0/0", "1.2.3.4", true), ("0.0.0.0/0", "::1", false), ("127.0.0.1", "127.0.0.1", true),
    ("127.0.0.1", "127.0.0.2", false), ("192.168.0.0/23", "192.168.1.9", true),
    ("192.168.0.0/23", "192.168.2.9", false), ("fd00::/8", "fd12::1", true), ("fd00::/8", "fe80::1", false),
    ("::1/128", "::1", true),
  ])
  func aNetworkHoldsWhatBeginsWithItsBits(network: String, address: String, isInside: Bool) throws {
    #expect(try #require(Network(network)).contains(self.address(address)) == isInside)
  }

  @Test(arguments: ["", "/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "fd00::/129", "example.com", "10.0.0.0/8/8"])
  func whatIsNoNetworkIsNone(text: String) {
    #expect(Network(text) == nil)
  }

  @Test func anAllowedNetworkContainsItsAddressesInEveryForm() throws {
    let networks = WebhookNetworks(allowed: [try #require(Network("10.0.0.0/8"))])
    for text in ["10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "8.8.8.8"] {
      #expect(try networks.permits(address(text)), "\(text)")
    }
    for text in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
      #expect(try !networks.permits(address(text)), "\(text)")
    }
  }
}
