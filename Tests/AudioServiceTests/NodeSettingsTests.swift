import Testing

@testable import AudioService

@Suite struct NodeSettingsTests {
  @Test(
    "an address by which other machines reach only themselves is known as one",
    arguments: [
      ("127.0.0.1", true), ("127.0.1.1", true), ("::1", true), ("0:0:0:0:0:0:0:1", true), ("::ffff:127.0.0.1", true),
      ("localhost", true), ("LocalHost", true), ("a.localhost", true), ("0.0.0.0", true), ("::", true),
      ("10.0.0.1", false), ("fd00::1", false), ("::ffff:10.0.0.1", false), ("n1.example", false),
      ("127.example", false),
      ("128.0.0.1", false), ("::127.0.0.1", false), ("localhost.example", false),
    ])
  func local(host: String, isLocal: Bool) { #expect(NodeSettings.isLocal(host) == isLocal) }
}
