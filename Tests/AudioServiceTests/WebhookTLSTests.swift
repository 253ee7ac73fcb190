import Storage
import Testing

@testable import AudioService

/// Whom webhooks over https trust.
@Suite struct WebhookTLSTests {
  private func call(_ receiver: TLSReceiver, trusting authorities: String?) throws -> WebhookOutcome {
    let loopback = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    return WebhookCall.post(
      Array("{\"state\":\"succeeded\"}".utf8), to: receiver.url, fields: ["Content-Type: application/json", "Expect:"],
      seconds: 30, networks: loopback, authorities: authorities)
  }

  @Test func aReceiverOfAnAuthorityThatIsTrustedGetsTheNews() throws {
    let receiver = try TLSReceiver(for: "IP:127.0.0.1")
    #expect(try call(receiver, trusting: receiver.authority) == .answered(204))
    let received = try receiver.received()
    #expect(received.contains("POST /hook HTTP/1.1") && received.contains("{\"state\":\"succeeded\"}"))
  }

  @Test func aReceiverThatNobodyVouchesForGetsNothing() throws {
    let receiver = try TLSReceiver(for: "IP:127.0.0.1")
    guard case .failed(let reason) = try call(receiver, trusting: nil) else {
      Issue.record("a certificate of an unknown authority was taken")
      return
    }
    #expect(reason.contains("certificate"))
    #expect(try !receiver.received().contains("POST"))
  }

  @Test func aCertificateForAnotherHostIsNone() throws {
    let receiver = try TLSReceiver(for: "DNS:elsewhere.example")
    guard case .failed = try call(receiver, trusting: receiver.authority) else {
      Issue.record("a certificate for another host was taken")
      return
    }
    #expect(try !receiver.received().contains("POST"))
  }

  @Test func theSettingReachesTheCall() async throws {
    let receiver = try TLSReceiver(for: "IP:127.0.0.1")
    let loopback = try #require(Network("127.0.0.0/8"))
    let bench = try TestBench {
      $0.webhookSecret = WebhookSecret("a secret of the tests")
      $0.webhookNetworks = [loopback]
      $0.webhookAuthorities = receiver.authority
    }
    let source = try bench.recording()
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"\(receiver.url)\"}")
    #expect(answer.status == .accepted)
    try await bench.eventually { bench.context.webhooks.delivered.value == 1 }
    #expect(try receiver.received().contains("Stillwave-Signature: t="))
    await bench.runner.stop()
  }
}
