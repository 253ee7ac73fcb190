import Testing

@testable import Webhooks

/// Which receivers of webhooks over https are trusted.
@Suite struct WebhookTLSTests {
  private func call(_ receiver: TLSReceiver, trusting authorities: String?) throws -> WebhookOutcome {
    let loopback = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    return WebhookCall.post(
      Array("{\"state\":\"succeeded\"}".utf8), to: receiver.url, fields: ["Content-Type: application/json", "Expect:"],
      seconds: 30, networks: loopback, authorities: authorities)
  }

  @Test func aReceiverWithATrustedAuthorityGetsTheJob() throws {
    let receiver = try TLSReceiver(for: "IP:127.0.0.1")
    #expect(try call(receiver, trusting: receiver.authority) == .answered(204))
    let received = try receiver.received()
    #expect(received.contains("POST /hook HTTP/1.1") && received.contains("{\"state\":\"succeeded\"}"))
  }

  @Test func aReceiverWithoutATrustedAuthorityGetsNothing() throws {
    let receiver = try TLSReceiver(for: "IP:127.0.0.1")
    guard case .failed(let reason) = try call(receiver, trusting: nil) else {
      Issue.record("a certificate of an unknown authority was taken")
      return
    }
    #expect(reason.contains("certificate"))
    #expect(try !receiver.received().contains("POST"))
  }

  @Test func aCertificateForAnotherHostIsRejected() throws {
    let receiver = try TLSReceiver(for: "DNS:elsewhere.example")
    guard case .failed = try call(receiver, trusting: receiver.authority) else {
      Issue.record("a certificate for another host was taken")
      return
    }
    #expect(try !receiver.received().contains("POST"))
  }
}
