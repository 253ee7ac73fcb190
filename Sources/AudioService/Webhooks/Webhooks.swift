// The finished Job is POSTed to the `callback_url` that its request gave, with
//
//   Stillwave-Signature: t=1795233906,v1=<HMAC-SHA256 of "1795233906." and the body, 64 hexadecimal digits>
//
// under the configured secret: t, the second at which it was sent, is part of what is signed, so that a receiver can
// refuse what is old. Any 2xx is a receipt. Anything else, a redirect too, is tried again after pauses of 10 s, 30 s,
// 90 s … 6 h, ten times in all in some 15 hours; an address that may not be called is given up at once. A row of the
// catalog lasts from the request to the receipt: a crash in between delivers twice, never not at all.

import Dispatch
import Storage
import Synchronization

/// What becomes of jobs with a `callback_url`, told to whom asked for it.
final class Webhooks: Sendable {
  private struct Pending {
    var webhook: Webhook
    /// Between two attempts; otherwise its job goes on.
    var isPausing = false
  }

  private struct State {
    var pending: [JobID: Pending] = [:]
    var due: [Webhook] = []
    /// Calls under way, by host.
    var running: [String: Int] = [:]
    var runningCount: Int { running.values.reduce(0, +) }
    var onIdle: CheckedContinuation<Void, Never>?
  }

  private let configuration: Configuration
  private let catalog: Catalog
  private let log: ServiceLog
  private let networks: WebhookNetworks
  private let state = Mutex(State())
  private let isStopping = Atomic(false)
  private let timers = DispatchQueue(label: "webhooks")
  let delivered = Counter()
  let failed = Counter()

  /// Calls at once, each on a thread of its own, and to one host: a slow one holds up no other.
  private static let callLimit = 8
  private static let callLimitPerHost = 2
  private static let longestPauseSeconds = 6.0 * 3600

  init(_ configuration: Configuration, catalog: Catalog, log: ServiceLog) {
    self.configuration = configuration
    self.catalog = catalog
    self.log = log
    networks = WebhookNetworks(allowed: configuration.webhookNetworks)
  }

  /// Takes up what an earlier life of the service left undelivered. Before the jobs begin.
  func resume() throws(StorageError) {
    for (webhook, isDue) in try catalog.webhooks() {
      if isDue {
        wait(Double(webhook.notBefore.milliseconds - Timestamp.now.milliseconds) / 1000, for: webhook)
      } else {
        expect(webhook)
      }
    }
  }

  /// The row is in the catalog; its job has not begun yet.
  func expect(_ webhook: Webhook) {
    state.withLock { $0.pending[webhook.job] = Pending(webhook: webhook) }
  }

  /// Costs a look-up where nobody wants to know of the job.
  func jobEnded(_ id: JobID) { take(id, isPausing: false) }

  /// Breaks off what is under way, for the next start to deliver.
  func stop() async {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.runningCount > 0 { state.onIdle = continuation }
        return state.runningCount == 0
      }
      if isIdle { return continuation.resume() }
      // libcurl asks every second; only a name server may keep it longer.
      timers.asyncAfter(deadline: .now() + 2) { [self] in becomeIdle() }
    }
  }

  private func becomeIdle() {
    state.withLock { state in
      defer { state.onIdle = nil }
      return state.onIdle
    }?.resume()
  }

  private func wait(_ seconds: Double, for webhook: Webhook) {
    state.withLock { $0.pending[webhook.job] = Pending(webhook: webhook, isPausing: true) }
    timers.asyncAfter(deadline: .now() + max(seconds, 0)) { [weak self] in self?.take(webhook.job, isPausing: true) }
  }

  private func take(_ id: JobID, isPausing: Bool) {
    let isDue = state.withLock { state in
      guard let pending = state.pending[id], pending.isPausing == isPausing else { return false }
      state.pending[id] = nil
      state.due.append(pending.webhook)
      return true
    }
    if isDue { fill() }
  }

  private func fill() {
    while let (webhook, address) = next() {
      // A serial queue of its own: a call that waits for its receiver takes no place of other work's.
      DispatchQueue(label: "webhook").async { [self] in
        deliver(webhook, to: address)
        let isIdle = state.withLock { state in
          state.running[address.authority, default: 1] -= 1
          if state.running[address.authority] == 0 { state.running[address.authority] = nil }
          return state.runningCount == 0
        }
        if isIdle { becomeIdle() }
        fill()
      }
    }
  }

  private func next() -> (Webhook, WebhookAddress)? {
    guard !isStopping.load(ordering: .sequentiallyConsistent) else { return nil }
    return state.withLock { state in
      guard state.runningCount < Self.callLimit else { return nil }
      for (index, webhook) in state.due.enumerated() {
        // Checked when it was asked for; a row that was changed by hand is left.
        guard let address = WebhookAddress(webhook.url) else { continue }
        guard state.running[address.authority, default: 0] < Self.callLimitPerHost else { continue }
        state.running[address.authority, default: 0] += 1
        state.due.remove(at: index)
        return (webhook, address)
      }
      return nil
    }
  }

  // MARK: One attempt, on a thread of its own

  private func deliver(_ webhook: Webhook, to address: WebhookAddress) {
    do {
      guard let job = try catalog.job(webhook.job) else { return try catalog.removeWebhook(of: webhook.job) }
      guard job.state.isFinished else { return expect(webhook) }
      let document = JobDocument(job, live: nil, base: configuration.basePath)
      let outcome = call(address, try JSONDocument.encoded(document))
      try note(outcome, webhook, address)
    } catch {
      log.failure("a webhook could not be recorded", ["job": webhook.job.text, "error": logText(error)])
      wait(configuration.webhookPauseSeconds, for: webhook)
    }
  }

  private func call(_ address: WebhookAddress, _ body: [UInt8]) -> WebhookOutcome {
    guard let secret = configuration.webhookSecret else { return .failed("there is no secret to sign with") }
    return WebhookCall.post(
      body, to: address.text,
      fields: [
        "Content-Type: application/json", "Expect:",
        "Stillwave-Signature: \(secret.signature(of: body, at: .now))",
      ],
      seconds: configuration.webhookTimeoutSeconds, networks: networks,
      authorities: configuration.webhookAuthorities,
      isCancelled: { [self] in isStopping.load(ordering: .sequentiallyConsistent) })
  }

  /// The log names the host alone: the rest of a URL may hold a password.
  private func note(_ outcome: WebhookOutcome, _ webhook: Webhook, _ address: WebhookAddress) throws(StorageError) {
    var webhook = webhook
    webhook.attempts += 1
    let facts = [
      "job": webhook.job.text, "host": address.authority, "attempt": "\(webhook.attempts)", "outcome": "\(outcome)",
    ]
    if outcome.isDelivered {
      try catalog.removeWebhook(of: webhook.job)
      delivered.add(1)
      log.notice("a webhook was delivered", facts)
    } else if isStopping.load(ordering: .sequentiallyConsistent) {
      // Broken off by the service: not held against the receiver.
    } else if outcome.isFinal || webhook.attempts >= configuration.webhookAttempts {
      try catalog.removeWebhook(of: webhook.job)
      failed.add(1)
      log.failure("a webhook was given up", facts)
    } else {
      let pause = min(configuration.webhookPauseSeconds * Self.growth(webhook.attempts), Self.longestPauseSeconds)
      webhook.notBefore = Timestamp(milliseconds: Timestamp.now.milliseconds + Int64(pause * 1000))
      try catalog.update(webhook)
      log.notice("a webhook is tried again later", facts)
      wait(pause, for: webhook)
    }
  }

  /// 1, 3, 9 …
  private static func growth(_ attempts: Int) -> Double { (1..<max(attempts, 1)).reduce(1) { factor, _ in factor * 3 } }
}
