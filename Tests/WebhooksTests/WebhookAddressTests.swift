import Testing

@testable import Webhooks

@Suite struct WebhookAddressTests {
  @Test(arguments: [
    ("http://192.0.2.1/hook", "192.0.2.1:80"), ("https://example.com:8443/a?b=c", "example.com:8443"),
    ("HTTPS://EXAMPLE.com", "EXAMPLE.com:443"), ("http://[2001:db8::1]:81/", "[2001:db8::1]:81"),
  ])
  func aWebhookGoesToAnHTTPAddress(text: String, authority: String) throws {
    #expect(try #require(WebhookAddress(text)).authority == authority)
  }

  @Test(arguments: [
    "", "example.com/hook", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "http://",
    "https://user@example.com/", "https://user:password@example.com/", "https://example.com/#a",
    "https://exa mple.com/",
    "https://example.com/\r\nX: y", "https://exämple.com/", "http://[fe80::1%25eth0]/", "http://example.com:99999/",
    "javascript:alert(1)", "http://example.com/" + String(repeating: "x", count: 2000),
  ])
  func aWebhookGoesNowhereElse(text: String) {
    #expect(WebhookAddress(text) == nil)
  }

  @Test(
    "every spelling of an address is the same address",
    arguments: [
      "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
      "http://0x7f000001/", "http://[::ffff:127.0.0.1]/", "http://[::1]/",
    ])
  func spellings(text: String) throws {
    let address = try #require(WebhookAddress(text))
    #expect(try !#require(address.literal).isPublic)
  }
}
