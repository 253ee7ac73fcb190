import Storage
import Testing

@testable import Webhooks

@Suite struct WebhookSecretTests {
  private static let secret = "a secret of the tests"

  @Test func aSignatureCoversItsTimeAndItsBody() throws {
    let secret = try #require(WebhookSecret(Self.secret))
    let body = Array("{}".utf8)
    let signature = secret.signature(of: body, at: Timestamp(milliseconds: 1_795_233_906_789))
    #expect(
      signature
        == "t=1795233906,v1="
        + HMACSHA256.hexDigest(of: Array("1795233906.{}".utf8), key: Array(Self.secret.utf8)))
  }

  @Test func theSecretIsNeverPrinted() throws {
    var settings = WebhookSettings()
    settings.secret = WebhookSecret(Self.secret)
    var shown = ""
    dump(settings, to: &shown)
    #expect(!"\(settings)".contains(Self.secret) && !shown.contains(Self.secret))
    #expect(!shown.contains("\(Array(Self.secret.utf8))"))
    #expect(WebhookSecret("too short") == nil)
  }
}
