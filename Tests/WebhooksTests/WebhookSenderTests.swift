import Foundation
import PresentRows
import Receivers
import Synchronization
import Terms
import Testing

@testable import Storage
@testable import Webhooks

/// A sender with its own catalog, without the service around it. A job's document is its id, a batch's also its state.
private final class Bench {
  final class Log: WebhookLog {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }

    func notice(_ message: String, _ metadata: [String: String]) { add("notice", message, metadata) }
    func failure(_ message: String, _ metadata: [String: String]) { add("failure", message, metadata) }
    func failure(_ message: String, _ metadata: [String: String], _ error: any Error) {
      add("failure", message, ["outcome": "\(error)"])
    }
    private func add(_ level: String, _ message: String, _ metadata: [String: String]) {
      lines.withLock { $0.append("\(level): \(message): \(metadata["outcome"] ?? "")") }
    }
  }

  private let folder: TemporaryFolder
  let catalog: Catalog
  let log = Log()
  let hand = ManualClock()
  private(set) var sender: WebhookSender
  private let settings: WebhookSettings

  init(_ change: (inout WebhookSettings) -> Void = { _ in }) throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(path: folder.path + "/catalog.sqlite", clock: hand.clock)
    var settings = WebhookSettings()
    settings.secret = WebhookSecret("a secret of the tests")
    settings.networks = [try #require(Network("127.0.0.0/8"))]
    // On a busy machine, a receiver may not get a thread for a minute.
    settings.timeoutSeconds = 600
    change(&settings)
    self.settings = settings
    sender = Self.sender(settings, catalog, log)
  }

  private static func sender(_ settings: WebhookSettings, _ catalog: Catalog, _ log: Log) -> WebhookSender {
    WebhookSender(settings, catalog: catalog, log: log) {
      switch $0 {
      case .job(let job): Array(job.id.text.utf8)
      case .batch(let batch): Array("\(batch.id) \(batch.state)".utf8)
      }
    }
  }

  /// Creates a finished job with a webhook and notifies the sender.
  @discardableResult
  func endedJob(callback: String) throws -> JobID {
    let recording = Recording(
      name: "a", format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 1))
    let job = Job(kind: .waveform, recording: recording.id, state: .succeeded, finishedAt: .now)
    let webhook = Webhook(job: job.id, url: callback, notBefore: .now)
    try catalog.insert(recording, jobs: [job], webhooks: [webhook])
    sender.expect(webhook)
    sender.jobEnded(job.id)
    return job.id
  }

  /// Stops the sender and starts another, like a restart of the service.
  func restart() async throws {
    await sender.stop()
    sender = Self.sender(settings, catalog, log)
    try sender.resume()
  }

  var waiting: [Webhook] { get throws { try catalog.webhooks().map(\.webhook) } }

  /// Makes all attempts that are due within a day, pauses included.
  func sendAll() async { await hand.run(for: 86_400) }
}

@Suite struct WebhookSenderTests {
  @Test("a batch's webhook is sent once, when all of it has ended")
  func batches() async throws {
    let bench = try Bench()
    let receiver = try WebhookReceiver()
    let batch = Batch(of: .none, client: "", kind: .loudness, parameters: "{}", total: 2, at: .now)
    let webhook = Webhook(job: JobID(batch.id), url: receiver.url, notBefore: .now)
    try bench.catalog.insert(batch, of: [RecordingID(), RecordingID()], webhook: webhook)
    bench.sender.expect(webhook)
    try bench.catalog.pass(.failed, next: batch)
    try await bench.restart()
    await bench.sendAll()
    #expect(receiver.received.isEmpty)
    try bench.catalog.pass(.succeeded, next: try #require(try bench.catalog.batch(batch.id)))
    bench.sender.jobEnded(JobID(batch.id))
    await bench.sendAll()
    #expect(receiver.received.map(\.body) == [Array("\(batch.id) failed".utf8)])
    #expect(try bench.waiting.isEmpty)
    await receiver.stop()
  }

  @Test func rejectedWebhooksAreSentAgain() async throws {
    let bench = try Bench { $0.timeoutSeconds = 2 }
    let receiver = try WebhookReceiver(
      .answers(500), .redirects("http://169.254.169.254/latest/meta-data/"), .answers(404), .staysSilent)
    let job = try bench.endedJob(callback: receiver.url)
    await bench.sendAll()
    #expect(receiver.received.map(\.body) == Array(repeating: Array(job.text.utf8), count: 5))
    #expect(try bench.waiting.isEmpty && bench.sender.deliveredCount == 1 && bench.sender.givenUpCount == 0)
    await receiver.stop()
  }

  @Test func aReceiverThatNeverAcceptsItIsGivenUp() async throws {
    let bench = try Bench { $0.maximumAttempts = 3 }
    let receiver = try WebhookReceiver(.answers(500), .answers(500), .answers(500))
    try bench.endedJob(callback: receiver.url)
    await bench.sendAll()
    #expect(try bench.waiting.isEmpty && bench.sender.givenUpCount == 1 && receiver.received.count == 3)
    await receiver.stop()
  }

  @Test func aForbiddenAddressIsGivenUpAtOnce() async throws {
    // A name, which can't be judged before it's looked up.
    let bench = try Bench { $0.networks = [] }
    let receiver = try WebhookReceiver()
    try bench.endedJob(callback: receiver.url.replacingOccurrences(of: "127.0.0.1", with: "localhost"))
    await bench.hand.idle()
    #expect(try bench.waiting.isEmpty && bench.sender.givenUpCount == 1)
    #expect(receiver.received.isEmpty && bench.log.all == ["failure: a webhook was given up: refused"])
    await receiver.stop()
  }

  @Test func aPauseOutlastsARestart() async throws {
    let bench = try Bench { $0.pauseSeconds = 1000 }
    let receiver = try WebhookReceiver(.answers(500))
    try bench.endedJob(callback: receiver.url)
    await bench.hand.idle()
    #expect(try bench.waiting.map(\.attempts) == [1])
    #expect(try bench.waiting.map(\.notBefore) == [bench.catalog.time + 1000])
    await bench.hand.run(for: 400)
    try await bench.restart()
    await bench.hand.run(for: 599)
    #expect(receiver.received.count == 1)
    await bench.hand.run(for: 1)
    #expect(try bench.waiting.isEmpty && receiver.received.count == 2)
    await receiver.stop()
  }

  @Test func theNextStartSendsUndeliveredWebhooks() async throws {
    let bench = try Bench()
    let receiver = try WebhookReceiver(.staysSilent)
    try bench.endedJob(callback: receiver.url)
    await receiver.receives(1)
    await bench.sender.stop()
    #expect(try bench.waiting.map(\.attempts) == [0])

    try await bench.restart()
    await bench.sendAll()
    #expect(try bench.waiting.isEmpty && receiver.received.count == 2)
    await receiver.stop()
  }

  @Test func theSignatureHasTheTimeOfTheCatalogsClock() async throws {
    let receiver = try TLSReceiver(for: "IP:127.0.0.1")
    let bench = try Bench { $0.authorities = receiver.authority }
    bench.catalog.note(clock: .now + -36_000)
    try bench.endedJob(callback: receiver.url)
    await bench.hand.idle()
    let request = try receiver.received()
    let text = try #require(request.split(separator: "Stillwave-Signature: t=").last?.prefix { $0.isNumber })
    let seconds = try #require(Int64(text))
    #expect(abs(seconds + 36_000 - Timestamp.now.milliseconds / 1000) < 3600)
  }

  @Test func authoritiesAreTrustedAsSet() async throws {
    let receiver = try TLSReceiver(for: "IP:127.0.0.1")
    let bench = try Bench { $0.authorities = receiver.authority }
    try bench.endedJob(callback: receiver.url)
    await bench.hand.idle()
    #expect(try receiver.received().contains("Stillwave-Signature: t="))
  }
}
