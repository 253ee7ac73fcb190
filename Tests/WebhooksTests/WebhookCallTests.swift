import Receivers
import Testing

@testable import Webhooks

/// One call, over a real socket.
@Suite struct WebhookCallTests {
  @Test func aNameIsJudgedByItsAddress() async throws {
    let receiver = try WebhookReceiver()
    let named = receiver.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    let strict = WebhookNetworks(allowed: [])
    let open = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    func call(_ url: String, _ networks: WebhookNetworks) -> WebhookOutcome {
      WebhookCall.post(Array("{}".utf8), to: url, fields: [], seconds: 30, networks: networks)
    }
    #expect(call(named, strict) == .refused)
    #expect(call(receiver.url, strict) == .refused)
    #expect(receiver.received.isEmpty)
    #expect(call(named, open) == .answered(204))
    #expect(call("file:///etc/passwd", open) != .answered(200))
    await receiver.stop()
    guard case .failed = call(receiver.url, open) else {
      Issue.record("nobody listens there")
      return
    }
  }

  @Test func aRedirectIsNotFollowed() async throws {
    let other = try WebhookReceiver()
    let receiver = try WebhookReceiver(.redirects(other.url), .redirects("http://169.254.169.254/"))
    let open = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    for _ in 0..<2 {
      let outcome = WebhookCall.post([], to: receiver.url, fields: [], seconds: 30, networks: open)
      #expect(outcome == .answered(302) && !outcome.isDelivered)
    }
    #expect(other.received.isEmpty)
    await receiver.stop()
    await other.stop()
  }

  @Test func anEndlessAnswerIsCutOff() async throws {
    let receiver = try WebhookReceiver(.answersWithoutEnd)
    let open = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    let outcome = WebhookCall.post([], to: receiver.url, fields: [], seconds: 600, networks: open)
    #expect(outcome == .answered(200))
    await receiver.stop()
  }
}
