// The finished Job or Batch is POSTed to the `callback_url` of its request, with
//
//   Stillwave-Signature: t=1795233906,v1=<HMAC-SHA256 of "1795233906." and the body, 64 hexadecimal digits>
//
// keyed with the configured secret. The signature covers the time of sending, t, in seconds since 1970, so that a
// receiver can refuse old messages. Any 2xx acknowledges the webhook. Anything else, including a redirect, is retried
// after pauses of 10 s, 30 s, 90 s … 6 h: ten attempts in all, over some 15 hours. A webhook whose address must not be
// called is given up at once. Its row stays in the catalog from the request to the acknowledgment, so after a crash in
// between, it may be delivered twice but isn't lost.
//
// If several processes share the catalog, each calls only what it has claimed there (Catalog+Webhooks), and looks every
// ten seconds for webhooks that are due: those of jobs that a process asked for that has gone, and those whose call a
// process didn't end.

import Dispatch
import Storage
import Synchronization

/// Sends finished jobs to the clients that gave a `callback_url`.
package final class WebhookSender: Sendable {
  /// What a webhook reports.
  package enum Subject: Sendable {
    case job(Job)
    case batch(Batch)

    fileprivate var hasEnded: Bool {
      switch self {
      case .job(let job): job.state.isFinished
      case .batch(let batch): batch.finishedAt != nil
      }
    }
  }

  private struct State {
    var queue = WebhookQueue()
    var onIdle: CheckedContinuation<Void, Never>?
  }

  private let settings: WebhookSettings
  private let catalog: Catalog
  private let log: any WebhookLog
  private let document: @Sendable (Subject) throws -> [UInt8]
  private let networks: WebhookNetworks
  private let state = Mutex(State())
  private let isStopping = Atomic(false)
  private let timers = DispatchQueue(label: "webhooks")
  private let delivered = Atomic(0)
  private let givenUp = Atomic(0)

  /// `document` encodes what has ended as the JSON to send.
  package init(
    _ settings: WebhookSettings, catalog: Catalog, log: any WebhookLog,
    document: @escaping @Sendable (Subject) throws -> [UInt8]
  ) {
    self.settings = settings
    self.catalog = catalog
    self.log = log
    self.document = document
    networks = WebhookNetworks(allowed: settings.networks)
  }

  /// Number of webhooks acknowledged since the start.
  package var deliveredCount: Int { delivered.load(ordering: .relaxed) }
  /// Number of webhooks given up since the start.
  package var givenUpCount: Int { givenUp.load(ordering: .relaxed) }

  /// Queues the webhooks that earlier runs of the service didn't deliver. Call it before the first job begins. Throws
  /// if the catalog can't be read.
  package func resume() throws(StorageError) {
    guard !catalog.isShared else { return seekRegularly() }
    for (webhook, isDue) in try catalog.webhooks() {
      if isDue {
        pause(Double(webhook.notBefore.milliseconds - catalog.time.milliseconds) / 1000, webhook)
      } else {
        expect(webhook)
      }
    }
  }

  /// Adds a webhook whose row is in the catalog and whose job hasn't begun yet. Parses its URL.
  package func expect(_ webhook: Webhook) {
    guard let delivery = WebhookQueue.Delivery(webhook) else { return }
    state.withLock { $0.queue.expect(delivery) }
  }

  /// Sends the webhook of a job or a batch that has ended, if it has one. Without one this costs a lookup.
  package func jobEnded(_ id: JobID) {
    if state.withLock({ $0.queue.jobEnded(id) }) { fill() }
  }

  /// Cancels running calls and waits up to 2 s for them to end; the next start repeats them.
  package func stop() async {
    isStopping.store(true, ordering: .sequentiallyConsistent)
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.queue.runningCount > 0 { state.onIdle = continuation }
        return state.queue.runningCount == 0
      }
      if isIdle { return continuation.resume() }
      // libcurl checks for cancellation every second; only a name lookup can take longer.
      catalog.clock.after(2, on: timers) { [self] in becomeIdle() }
    }
  }

  /// Queues webhooks that are due in the catalog, now and regularly. Only for a shared catalog.
  private func seekRegularly() {
    guard settings.secret != nil else { return }
    catalog.clock.async(on: DispatchQueue(label: "webhooks due")) { [weak self] in
      guard let self, !isStopping.load(ordering: .sequentiallyConsistent) else { return }
      do { try seek() } catch { log.failure("due webhooks could not be looked for", [:], error) }
      catalog.clock.after(settings.seekSeconds, on: timers) { [weak self] in self?.seekRegularly() }
    }
  }

  private func seek() throws(StorageError) {
    for webhook in try catalog.dueWebhooks(limit: 100) {
      guard let delivery = WebhookQueue.Delivery(webhook) else { continue }
      _ = state.withLock { $0.queue.found(delivery) }
    }
    fill()
  }

  private func becomeIdle() {
    state.withLock { state in
      defer { state.onIdle = nil }
      return state.onIdle
    }?.resume()
  }

  private func pause(_ seconds: Double, _ webhook: Webhook) {
    guard let delivery = WebhookQueue.Delivery(webhook) else { return }
    state.withLock { $0.queue.pause(delivery) }
    catalog.clock.after(seconds, on: timers) { [weak self] in
      guard let self, state.withLock({ $0.queue.pauseEnded(webhook.job) }) else { return }
      fill()
    }
  }

  private func fill() {
    while !isStopping.load(ordering: .sequentiallyConsistent), let next = state.withLock({ $0.queue.begin() }) {
      // Each call has its own serial queue, so that waiting for a receiver takes no thread from other work.
      catalog.clock.async(on: DispatchQueue(label: "webhook")) { [self] in
        deliver(next)
        let isIdle = state.withLock { state in
          state.queue.end(next)
          return state.queue.runningCount == 0
        }
        if isIdle { becomeIdle() }
        fill()
      }
    }
  }

  // MARK: One attempt, on a thread of its own

  private func deliver(_ due: WebhookQueue.Delivery) {
    var delivery = due
    let webhook = due.webhook
    do {
      guard let subject = try subject(of: webhook) else { return try catalog.removeWebhook(of: webhook.job) }
      guard subject.hasEnded else { return expect(webhook) }
      if catalog.isShared {
        // Time for the call and for recording its outcome.
        guard let claimed = try catalog.claimWebhook(of: webhook.job, forSeconds: settings.timeoutSeconds + 15) else {
          return
        }
        delivery.webhook = claimed
      }
      try note(call(delivery, document(subject)), delivery)
    } catch {
      log.failure("the outcome of a webhook could not be recorded", ["job": webhook.job.text], error)
      pause(settings.pauseSeconds, webhook)
    }
  }

  private func subject(of webhook: Webhook) throws(StorageError) -> Subject? {
    if let job = try catalog.job(webhook.job) { return .job(job) }
    return try webhook.batch.flatMap { (id) throws(StorageError) in try catalog.batch(id) }.map(Subject.batch)
  }

  private func call(_ delivery: WebhookQueue.Delivery, _ body: [UInt8]) -> WebhookOutcome {
    guard let secret = settings.secret else { return .failed("there is no secret to sign with") }
    return WebhookCall.post(
      body, to: delivery.address.text,
      fields: [
        "Content-Type: application/json", "Expect:",
        "Stillwave-Signature: \(secret.signature(of: body, at: catalog.time))",
      ] + (delivery.webhook.traceparent.map { ["traceparent: \($0)"] } ?? []),
      seconds: settings.timeoutSeconds, networks: networks, authorities: settings.authorities,
      isCancelled: { [self] in isStopping.load(ordering: .sequentiallyConsistent) })
  }

  /// Logs only the host, because the rest of a URL may contain a password.
  private func note(_ outcome: WebhookOutcome, _ delivery: WebhookQueue.Delivery) throws(StorageError) {
    var webhook = delivery.webhook
    webhook.attempts += 1
    let facts = [
      "job": webhook.job.text, "host": delivery.address.authority, "attempt": "\(webhook.attempts)",
      "outcome": "\(outcome)",
    ]
    if outcome.isDelivered {
      try catalog.removeWebhook(of: webhook.job)
      delivered.wrappingAdd(1, ordering: .relaxed)
      log.notice("a webhook was delivered", facts)
    } else if isStopping.load(ordering: .sequentiallyConsistent) {
      // The service canceled the call, so it doesn't count as an attempt.
      if catalog.isShared { try catalog.release(delivery.webhook, pauseSeconds: 0) }
    } else if outcome.isFinal || webhook.attempts >= settings.maximumAttempts {
      try catalog.removeWebhook(of: webhook.job)
      givenUp.wrappingAdd(1, ordering: .relaxed)
      log.failure("a webhook was given up", facts)
    } else {
      let seconds = settings.pause(after: webhook.attempts)
      if catalog.isShared {
        try catalog.release(webhook, pauseSeconds: seconds)
      } else {
        webhook.notBefore = catalog.time + seconds
        try catalog.update(webhook)
      }
      log.notice("a webhook is tried again later", facts)
      pause(seconds, webhook)
    }
  }
}
