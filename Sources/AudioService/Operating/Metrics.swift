import HTTP
import Synchronization
import Terms
import Webhooks

/// The service's counters in Prometheus' text format (version 0.0.4).
final class Metrics: Sendable {
  let uploads = Counter()
  let bytesReceived = Counter()
  let requests = RequestTimes()
  private let webhooks: WebhookSender
  private let clock: Clock
  private let started: Clock.Instant

  init(_ webhooks: WebhookSender, _ clock: Clock) {
    (self.webhooks, self.clock, started) = (webhooks, clock, clock.now)
  }

  /// Wraps a closure, because each access to one that is a mutex's value itself would wrap it in another closure.
  private struct Source {
    let statistics: @Sendable () -> ServerStatistics
  }

  private let server = Mutex<Source?>(nil)

  /// Sets the source of the HTTP server's counters.
  func watch(_ statistics: @escaping @Sendable () -> ServerStatistics) {
    server.withLock { $0 = Source(statistics: statistics) }
  }

  func text(liveJobs: Int, orphans: Int) -> String {
    var text = ""
    func metric(_ name: String, _ kind: String, _ help: String, _ values: [(label: String, value: String)]) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
      for (label, value) in values { text += "\(name)\(label) \(value)\n" }
    }
    metric("stillwave_upload_bytes_total", "counter", "Bytes of uploads.", [("", "\(bytesReceived.value)")])
    metric("stillwave_uploads_total", "counter", "Uploads that became recordings.", [("", "\(uploads.value)")])
    if let statistics = server.withLock({ $0 })?.statistics() {
      metric(
        "stillwave_http_responses_total", "counter", "Responses by class of status.",
        (1...5).map { ("{class=\"\($0)xx\"}", "\(statistics.responses[$0])") })
      metric(
        "stillwave_http_request_seconds_total", "counter", "Seconds spent on requests.",
        [("", "\(statistics.requestSeconds)")])
      metric("stillwave_http_sent_bytes_total", "counter", "Bytes of responses.", [("", "\(statistics.bytesSent)")])
      metric(
        "stillwave_http_connections", "gauge", "Connections open now.", [("", "\(statistics.openConnections)")])
      metric(
        "stillwave_http_connections_total", "counter", "Connections by what became of them.",
        [
          ("{outcome=\"accepted\"}", "\(statistics.acceptedConnections - statistics.refusedConnections)"),
          ("{outcome=\"refused\"}", "\(statistics.refusedConnections)"),
        ])
    }
    metric(
      "stillwave_orphaned_files", "gauge", "Folders and uploads kept aside because nothing says what they are.",
      [("", "\(orphans)")])
    metric("stillwave_jobs_unfinished", "gauge", "Jobs that wait or run.", [("", "\(liveJobs)")])
    metric(
      "stillwave_webhooks_total", "counter", "Webhooks by what became of them.",
      [
        ("{outcome=\"delivered\"}", "\(webhooks.deliveredCount)"),
        ("{outcome=\"given_up\"}", "\(webhooks.givenUpCount)"),
      ])
    let uptime = clock.seconds(since: started)
    metric("stillwave_uptime_seconds", "gauge", "Seconds since the start.", [("", "\(uptime)")])
    return text
  }
}
