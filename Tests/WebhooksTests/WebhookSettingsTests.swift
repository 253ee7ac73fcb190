import Testing

@testable import Webhooks

@Suite struct WebhookSettingsTests {
  private func settings(allowing networks: String...) throws -> WebhookSettings {
    var settings = WebhookSettings()
    settings.secret = WebhookSecret("a secret of the tests")
    settings.networks = try networks.map { try #require(Network($0)) }
    return settings
  }

  private func refusal(of url: String, _ settings: WebhookSettings) -> WebhookRefusal? {
    do throws(WebhookRefusal) { try settings.check(url: url) } catch { return error }
    return nil
  }

  @Test(
    "an address inside a private network is rejected",
    arguments: [
      "http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "http://[fd00::1]:8080/",
      "http://[::ffff:192.168.0.1]/", "https://192.168.1.1/", "http://0x0a000001/", "http://0.0.0.0/",
    ])
  func privateAddress(url: String) throws {
    #expect(try refusal(of: url, settings(allowing: "127.0.0.0/8")) == .privateNetwork)
  }

  @Test(arguments: ["http://127.0.0.1:8080/", "https://a.example/hook", "https://8.8.8.8/"])
  func otherAddressesAndNamesAreTaken(url: String) throws {
    #expect(try refusal(of: url, settings(allowing: "127.0.0.0/8")) == nil)
  }

  @Test func withoutASecretThereAreNone() {
    #expect(refusal(of: "https://a.example/", WebhookSettings()) == .off)
    #expect(refusal(of: "ftp://a.example/", WebhookSettings()) == .malformed)
  }

  @Test func pausesGrow() {
    let pauses = (1...10).map { WebhookSettings().pause(after: $0) }
    #expect(pauses == [10, 30, 90, 270, 810, 2430, 7290, 21_600, 21_600, 21_600])
  }
}
