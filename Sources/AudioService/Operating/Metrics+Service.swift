import Jobs
import Storage
import Synchronization
import Terms

extension Context {
  /// All metrics in Prometheus' text format; `isReady` is what `/readyz` says. Blocks.
  func metricsText(isReady: Bool) -> String {
    let (waiting, running) = runner.live.counts
    var text = metrics.text(liveJobs: waiting + running, orphans: media.orphanCount)
    typealias Values = [(labels: String, value: String)]
    func metric(_ kind: String, _ name: String, _ help: String, _ values: Values) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n"
      for (labels, value) in values { text += "\(name)\(labels) \(value)\n" }
    }
    func gauge(_ name: String, _ help: String, _ values: Values) { metric("gauge", name, help, values) }
    func counter(_ name: String, _ help: String, _ values: Values) { metric("counter", name, help, values) }
    gauge("stillwave_ready", "1 if the service can take work, as /readyz says.", [("", isReady ? "1" : "0")])
    gauge(
      "stillwave_jobs", "Jobs by what they do now.",
      [("{state=\"queued\"}", "\(waiting)"), ("{state=\"running\"}", "\(running)")])
    counter(
      "stillwave_lost_attempts_total", "Attempts at jobs that this node took over from processes that were gone.",
      [("", "\(runner.lostAttempts.load(ordering: .relaxed))")])
    gauge(
      "stillwave_altered_files", "Recordings whose files have changed on the disk, as far as they were compared.",
      [("", "\(scrub.alteredCount)")])
    gauge(
      "stillwave_clock_doubtful", "1 while nothing is deleted because of its age: the catalog's clock may be wrong.",
      [("", catalogClock.doubt == nil ? "0" : "1")])
    gauge(
      "stillwave_clock_difference_seconds", "How far the catalog's clock is ahead of this machine's.",
      [("", "\(catalogClock.differenceSeconds)")])
    if let feed {
      gauge(
        "stillwave_node_info", "This node.",
        [("{node=\"\(feed.node)\",role=\"\(configuration.cluster.role.rawValue)\"}", "1")])
      gauge(
        "stillwave_feed_age_seconds", "Time since the feed of other nodes' changes last proved that it delivers.",
        [("", feed.ageSeconds.map { "\($0)" } ?? "+Inf")])
    }
    if let forwarded {
      counter(
        "stillwave_forwarded_waveforms_total", "Requests for waveforms that other nodes build, by outcome.",
        [
          ("{outcome=\"succeeded\"}", "\(forwarded.successes.value)"),
          ("{outcome=\"failed\"}", "\(forwarded.failures.value)"),
        ])
    }
    text += jobMeter.text + metrics.requests.text
    let lanes = lanes
    gauge(
      "stillwave_waiting", "Requests that wait for their client's turn.",
      lanes.map { ("{lane=\"\($0.name)\"}", "\($0.figures.waiting)") })
    if let free = try? scratch.freeBytes() {
      gauge("stillwave_disk_free_bytes", "Free space on the disk of the data folder.", [("", "\(free)")])
    }
    func histogram(_ name: String, _ help: String, _ lines: (String) -> String) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) histogram\n" + lines(name)
    }
    func byLane(_ part: KeyPath<LaneFigures, Histogram>) -> (String) -> String {
      { name in lanes.map { $0.figures[keyPath: part].lines(name, labels: "lane=\"\($0.name)\"") }.joined() }
    }
    histogram("stillwave_lane_wait_seconds", "Time that requests waited for their client's turn.", byLane(\.waits))
    histogram("stillwave_lane_run_seconds", "Time of what requests waited for.", byLane(\.runs))
    histogram("stillwave_worker_peak_bytes", "Peak memory of worker processes.", WorkerMemory.lines)
    counter(
      "stillwave_worker_signals_total", "Workers that a signal ended, which neither the service nor a limit had sent.",
      WorkerSignals.bySignal.map { ("{signal=\"\($0.signal)\"}", "\($0.count)") })
    let times = catalogTimes
    histogram("stillwave_catalog_seconds", "Time of calls of the catalog.") { name in
      times.reads.lines(name, labels: "operation=\"read\"") + times.writes.lines(name, labels: "operation=\"write\"")
    }
    counter(
      "stillwave_catalog_held_total", "Writes that held the catalog for more than a second.",
      [("", "\(writeWatch.count)")])
    gauge(
      "stillwave_catalog_held_seconds", "How long a write has held the catalog, if for more than a second.",
      [("", "\(writeWatch.current?.seconds ?? 0)")])
    if let bucket = media.bucket { text += bucket.metricsText }
    if configuration.metricsTenants { text += tenantsText() }
    return text
  }

  private func tenantsText() -> String {
    guard let tenants = try? storedByTenant() else { return "" }
    var (bytes, recordings) = ("", "")
    for (tenant, usage) in tenants.sorted(by: { $0.key.name < $1.key.name }) {
      // The escapes of Prometheus' text format.
      let name = tenant.name.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
      bytes += "stillwave_tenant_stored_bytes{tenant=\"\(name)\"} \(usage.storedBytes)\n"
      recordings += "stillwave_tenant_recordings{tenant=\"\(name)\"} \(usage.recordings)\n"
    }
    return """
      # HELP stillwave_tenant_stored_bytes Bytes of what is kept for a tenant: recordings, what is made of them, labels and noise profiles.
      # TYPE stillwave_tenant_stored_bytes gauge
      \(bytes)# HELP stillwave_tenant_recordings Recordings of a tenant.
      # TYPE stillwave_tenant_recordings gauge
      \(recordings)
      """
  }
}
