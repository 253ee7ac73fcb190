import Storage

extension Context {
  /// All metrics in Prometheus' text format. Blocks.
  func metricsText() -> String {
    let (waiting, running) = runner.live.counts
    var text = metrics.text(liveJobs: waiting + running, orphans: store.orphanCount())
    func gauge(_ name: String, _ help: String, _ values: [(labels: String, value: String)]) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
      for (labels, value) in values { text += "\(name)\(labels) \(value)\n" }
    }
    gauge(
      "stillwave_jobs", "Jobs by what they do now.",
      [("{state=\"queued\"}", "\(waiting)"), ("{state=\"running\"}", "\(running)")])
    text += jobMeter.text + metrics.requests.text
    gauge(
      "stillwave_waiting", "Requests that wait for their client's turn.",
      [
        ("{lane=\"sound_probes\"}", "\(probes.sounds.waitingCount)"),
        ("{lane=\"media_probes\"}", "\(probes.media.waitingCount)"),
        ("{lane=\"previews\"}", "\(previews.waitingCount)"), ("{lane=\"pictures\"}", "\(drawings.waitingCount)"),
      ])
    if let free = try? store.freeBytes() {
      gauge("stillwave_disk_free_bytes", "Free space on the disk of the data folder.", [("", "\(free)")])
    }
    let name = "stillwave_catalog_seconds"
    text += "# HELP \(name) Time of calls of the catalog.\n# TYPE \(name) histogram\n"
    let times = catalogTimes
    text += times.reads.lines(name, labels: "operation=\"read\"")
    text += times.writes.lines(name, labels: "operation=\"write\"")
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
      # HELP stillwave_tenant_stored_bytes Bytes of a tenant's recordings.
      # TYPE stillwave_tenant_stored_bytes gauge
      \(bytes)# HELP stillwave_tenant_recordings Recordings of a tenant.
      # TYPE stillwave_tenant_recordings gauge
      \(recordings)
      """
  }
}
