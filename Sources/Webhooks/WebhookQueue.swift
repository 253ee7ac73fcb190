import Storage

/// Decides which webhook is sent next.
///
///     jobEnded              begin              answered
///     expected ───────► due ─────► running ─────────────► gone
///                        ▲            │ to be retried
///                        └── pausing ◄┘
///                   pauseEnded
///
/// At most `callLimit` calls run at once, and `callLimitPerHost` to one host and port, so that a slow receiver doesn't
/// hold up the others. A value type that uses no clock, catalog, or network.
struct WebhookQueue {
  /// A webhook with its parsed URL.
  struct Delivery: Sendable {
    var webhook: Webhook
    let address: WebhookAddress

    /// Parses the URL with libcurl. Returns nil for an invalid URL. URLs are validated on request, so the row was
    /// edited by hand; it is ignored.
    init?(_ webhook: Webhook) {
      guard let address = WebhookAddress(webhook.url) else { return nil }
      self.webhook = webhook
      self.address = address
    }
  }

  /// Maximum number of calls at once.
  static let callLimit = 8
  /// Maximum number of calls at once to one host and port.
  static let callLimitPerHost = 2

  /// Webhooks of unfinished jobs.
  private var expected: [JobID: Delivery] = [:]
  /// Webhooks that wait between two attempts.
  private var pausing: [JobID: Delivery] = [:]
  private var due: [Delivery] = []
  /// The jobs whose webhooks are due or running.
  private var taken: Set<JobID> = []
  /// Number of running calls by host and port.
  private var running: [String: Int] = [:]
  /// Number of running calls.
  private(set) var runningCount = 0

  /// Adds a webhook of an unfinished job.
  mutating func expect(_ delivery: Delivery) { expected[delivery.webhook.job] = delivery }

  /// Adds a webhook that is retried after a pause.
  mutating func pause(_ delivery: Delivery) { pausing[delivery.webhook.job] = delivery }

  /// Handles the end of a job. Returns whether its webhook is now due; false if it has none.
  mutating func jobEnded(_ id: JobID) -> Bool { makeDue(expected.removeValue(forKey: id)) }

  /// Handles the end of a pause. Returns whether the job's webhook is now due.
  mutating func pauseEnded(_ id: JobID) -> Bool { makeDue(pausing.removeValue(forKey: id)) }

  /// Handles a webhook that was found due in the catalog. Returns whether it is due here now; false if it was already.
  mutating func found(_ delivery: Delivery) -> Bool {
    expected[delivery.webhook.job] = nil
    pausing[delivery.webhook.job] = nil
    return taken.contains(delivery.webhook.job) ? false : makeDue(delivery)
  }

  private mutating func makeDue(_ delivery: Delivery?) -> Bool {
    guard let delivery else { return false }
    taken.insert(delivery.webhook.job)
    due.append(delivery)
    return true
  }

  /// Takes the next webhook to send, which counts as running until `end`. Returns nil if the limits are reached.
  mutating func begin() -> Delivery? {
    guard runningCount < Self.callLimit else { return nil }
    let next = due.firstIndex { running[$0.address.authority, default: 0] < Self.callLimitPerHost }
    guard let next else { return nil }
    let delivery = due.remove(at: next)
    running[delivery.address.authority, default: 0] += 1
    runningCount += 1
    return delivery
  }

  /// Handles the end of a call that `begin` started.
  mutating func end(_ delivery: Delivery) {
    guard let count = running[delivery.address.authority] else { preconditionFailure("a call that ends was begun") }
    running[delivery.address.authority] = count > 1 ? count - 1 : nil
    taken.remove(delivery.webhook.job)
    runningCount -= 1
  }
}
