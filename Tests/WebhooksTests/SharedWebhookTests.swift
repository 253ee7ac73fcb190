import Foundation
import PresentRows
import Receivers
import Storage
import Terms
import Testing

@testable import Webhooks

/// Webhooks of processes that share a catalog.
@Suite struct SharedWebhookTests {
  private struct Silence: WebhookLog {
    func notice(_ message: String, _ metadata: [String: String]) {}
    func failure(_ message: String, _ metadata: [String: String]) {}
    func failure(_ message: String, _ metadata: [String: String], _ error: any Error) {}
  }

  private let folder: TemporaryFolder
  private let hand = ManualClock()
  private let nodes: [Catalog]
  private let senders: [WebhookSender]

  init() throws {
    folder = try TemporaryFolder()
    let path = folder.path + "/catalog.sqlite"
    nodes = try ["one", "two", "dead"].map { [hand] in
      try Catalog(path: path, holder: LeaseHolder(name: $0, terms: LeaseHolder.Terms()), clock: hand.clock)
    }
    var settings = WebhookSettings()
    settings.secret = WebhookSecret("a secret of the tests")
    settings.networks = [try #require(Network("127.0.0.0/8"))]
    settings.timeoutSeconds = 600
    senders = nodes.prefix(2).map { [settings] in
      WebhookSender(settings, catalog: $0, log: Silence()) {
        if case .job(let job) = $0 { Array(job.id.text.utf8) } else { [] }
      }
    }
  }

  private func endedJob(callback: String) throws -> Webhook {
    let recording = Recording(
      name: "a", format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 1))
    let job = Job(kind: .waveform, recording: recording.id, state: .succeeded, finishedAt: .now)
    let webhook = Webhook(job: job.id, url: callback, notBefore: .now)
    try nodes[0].insert(recording, jobs: [job], webhooks: [webhook])
    return webhook
  }

  private func deliver(through receiver: WebhookReceiver, _ webhooks: [Webhook], calls: Int) async throws {
    for sender in senders { try sender.resume() }
    for sender in senders {
      for webhook in webhooks {
        sender.expect(webhook)
        sender.jobEnded(webhook.job)
      }
    }
    await hand.run(for: 60)
    #expect(try nodes[0].webhooks().isEmpty)
    for sender in senders { await sender.stop() }
    #expect(receiver.received.count == calls)
    #expect(Set(receiver.received.map(\.body)) == Set(webhooks.map { Array($0.job.text.utf8) }))
    await receiver.stop()
  }

  @Test("two processes that both hear of the ends of jobs deliver each webhook once")
  func once() async throws {
    let receiver = try WebhookReceiver()
    let webhooks = try (0..<12).map { _ in try endedJob(callback: receiver.url) }
    try await deliver(through: receiver, webhooks, calls: 12)
  }

  @Test("a rejected webhook is tried again, by whichever process finds it first")
  func again() async throws {
    let receiver = try WebhookReceiver(.answers(500), .answers(500))
    try await deliver(through: receiver, [try endedJob(callback: receiver.url)], calls: 3)
  }

  @Test("a webhook whose process died during its call is called by another")
  func died() async throws {
    let receiver = try WebhookReceiver()
    let webhook = try endedJob(callback: receiver.url)
    #expect(try nodes[2].claimWebhook(of: webhook.job, forSeconds: 30) != nil)
    for sender in senders { try sender.resume() }
    await hand.run(for: 29)
    #expect(receiver.received.isEmpty)
    await hand.run(for: 60)
    #expect(try nodes[0].webhooks().isEmpty)
    for sender in senders { await sender.stop() }
    #expect(receiver.received.count == 1)
    await receiver.stop()
  }
}
