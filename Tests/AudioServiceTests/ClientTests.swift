import HTTP
import Testing
import Webhooks

@testable import AudioService
@testable import Jobs

/// Which requests count toward the same client.
struct ClientTests {
  /// The key of a peer without proxies.
  private static func key(_ address: String) -> String { Client(peer: address, forwarded: nil, trusting: []).key }

  @Test(
    "an address is one client, whatever the port",
    arguments: [
      ("192.0.2.1:5000", "192.0.2.1:6000", true), ("192.0.2.1:5000", "192.0.2.2:5000", false),
      ("[2001:db8:0:1::5]:1", "[2001:db8:0:1:ffff::9]:2", true), ("[2001:db8:0:1::5]:1", "[2001:db8:0:2::5]:1", false),
      ("[::ffff:192.0.2.1]:5", "192.0.2.1:9", true), ("[::ffff:192.0.2.1]:5", "[::ffff:192.0.2.2]:5", false),
      ("[::1]:5", "[::2]:5", true), ("127.0.0.1:5", "127.0.0.2:5", false), ("in-process", "in-process", true),
      ("[2001:db8::1]:5", "32.1.13.184:5", false),
    ])
  func direct(one: String, other: String, areSame: Bool) { #expect((Self.key(one) == Self.key(other)) == areSame) }

  @Test(
    "only trusted proxies name their client, by the rightmost address that isn't a proxy's",
    arguments: [
      // From others, the field is only what the client claims.
      ("203.0.113.7:1", "198.51.100.1", "203.0.113.7:1"), ("203.0.113.7:1", nil, "203.0.113.7:1"),
      ("10.0.0.1:1", "198.51.100.1", "198.51.100.1:1"), ("10.0.0.1:1", "6.6.6.6, 198.51.100.1", "198.51.100.1:1"),
      ("10.0.0.1:1", "198.51.100.1, 10.0.0.2 ,10.0.0.3", "198.51.100.1:1"),
      ("10.0.0.1:1", "garbage, 198.51.100.1", "198.51.100.1:1"),
      ("10.0.0.1:1", "198.51.100.1:4711", "198.51.100.1:1"), ("10.0.0.1:1", "[2001:db8::7]:80", "[2001:db8::9]:1"),
      ("10.0.0.1:1", "2001:db8::7", "[2001:db8::9]:1"), ("10.0.0.1:1", "::ffff:198.51.100.1", "198.51.100.1:1"),
      ("[::ffff:10.0.0.1]:1", "198.51.100.1", "198.51.100.1:1"), ("[fd00::5]:1", "198.51.100.1", "198.51.100.1:1"),
      // All of them are proxies, so nothing in the list can choose among them.
      ("10.0.0.1:1", "10.0.0.8, 10.0.0.9", "10.0.0.1:1"),
      // A field that isn't a list of addresses is ignored.
      ("10.0.0.1:1", nil, "10.0.0.1:1"), ("10.0.0.1:1", "", "10.0.0.1:1"), ("10.0.0.1:1", "unknown", "10.0.0.1:1"),
      ("10.0.0.1:1", "198.51.100.1,", "10.0.0.1:1"), ("10.0.0.1:1", "198.51.100.1, x, 10.0.0.2", "10.0.0.1:1"),
      ("10.0.0.1:1", "198.51.100.1:99999", "10.0.0.1:1"), ("10.0.0.1:1", "[198.51.100.1]", "10.0.0.1:1"),
      ("10.0.0.1:1", "[2001:db8::1]x", "10.0.0.1:1"), ("10.0.0.1:1", "[2001:db8::1", "10.0.0.1:1"),
      ("10.0.0.1:1", String(repeating: "1", count: 5000), "10.0.0.1:1"),
    ] as [(String, String?, String)])
  func proxies(peer: String, forwarded: String?, expected: String) throws {
    let trusted = [try #require(Network("10.0.0.0/8")), try #require(Network("fd00::5"))]
    #expect(Client(peer: peer, forwarded: forwarded, trusting: trusted).key == Self.key(expected))
  }

  @Test(
    "a connection counts toward its peer, a trusted proxy's toward no client",
    arguments: [
      ("192.0.2.1", "192.0.2.1:9"), ("2001:db8:0:1::5", "[2001:db8:0:1::9]:9"), ("::ffff:192.0.2.1", "192.0.2.1:9"),
      ("10.1.2.3", nil), ("::ffff:10.1.2.3", nil), ("fd00::5", nil), ("fd00::6", "[fd00::6]:9"),
    ] as [(String, String?)])
  func connections(address: String, expected: String?) throws {
    let trusted = [try #require(Network("10.0.0.0/8")), try #require(Network("fd00::5"))]
    #expect(Client.connecting(from: address, trusting: trusted)?.key == expected.map(Self.key))
  }

  @Test func fieldsOnSeveralLinesAreOneList() throws {
    var fields: HTTPFields = [:]
    fields.append("X-Forwarded-For", "6.6.6.6")
    fields.append("X-Forwarded-For", "198.51.100.1, 10.0.0.2")
    let request = try HTTPRequest(method: .get, target: "/", fields: fields, peer: "10.0.0.1:80")
    let trusted = [try #require(Network("10.0.0.0/8"))]
    #expect(Client(request, trusting: trusted).key == Self.key("198.51.100.1:1"))
    #expect(Client(request, trusting: []).key == Self.key("10.0.0.1:1"))
  }
}
