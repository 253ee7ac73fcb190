/// What a tenant has and has used, as counted by the catalog.
package struct TenantUsage: Sendable, Equatable {
  /// Number of recordings.
  package var recordings: Int64 = 0
  /// Total length of their audio files, their labels and the tenant's noise profiles, in bytes.
  package var storedBytes: Int64 = 0
  /// Number of unfinished resumable uploads.
  package var openUploads: Int64 = 0
  /// Total announced length of these, in bytes.
  package var announcedBytes: Int64 = 0
  /// Total expected length of the recordings that unfinished jobs make, in bytes: as long as their sources or, for a
  /// part, its share.
  package var expectedBytes: Int64 = 0
  /// Number of waiting jobs.
  package var queuedJobs: Int64 = 0
  /// Number of running jobs.
  package var runningJobs: Int64 = 0
  /// Seconds for which jobs have run today (UTC).
  package var jobSecondsToday = 0.0
}

/// Limits on what a tenant may store, checked in the transaction that stores it.
package struct StoredLimits: Sendable, Equatable {
  /// Maximum number of recordings; nil for any.
  package var recordings: Int64?
  /// Maximum total length of audio files, labels and noise profiles, in bytes; nil for any.
  package var bytes: Int64?

  /// Creates limits.
  package init(recordings: Int64? = nil, bytes: Int64? = nil) { (self.recordings, self.bytes) = (recordings, bytes) }
}

extension TenantCatalog {
  /// A query for the bytes of the recordings that a tenant's unfinished jobs make.
  private static func expected(_ dialect: SQLDialect) -> String {
    let (start, end) = (dialect.number("start", in: "parameters"), dialect.number("end", in: "parameters"))
    let share = dialect.clamp("((\(end)) - (\(start))) / duration", from: 0, to: 1)
    return """
      SELECT CAST(sum(source.bytes * CASE WHEN kind = 'trim' AND duration > 0 THEN coalesce(\(share), 1) ELSE 1 END)
        AS bigint)
      FROM jobs JOIN recordings AS source ON source.id = jobs.recording
      WHERE state IN ('queued', 'running') AND output IS NOT NULL AND jobs.tenant = ?
      """
  }

  /// Returns what the tenant has and has used, its jobs' seconds as in `jobSeconds`. Reads its unfinished jobs and
  /// uploads.
  package func usage(through day: Int64 = 0) throws(StorageError) -> TenantUsage {
    try whole.read { db in
      var usage = TenantUsage()
      let name = tenant.name
      if let row = try db.row("SELECT recordings, bytes FROM usage WHERE tenant = ?", [name]) {
        (usage.recordings, usage.storedBytes) = (try value(row, "recordings"), try value(row, "bytes"))
      }
      let uploads = "SELECT count(*) AS open, CAST(coalesce(sum(length), 0) AS bigint) AS announced FROM uploads"
      if let row = try db.row(uploads + " WHERE recording IS NULL AND tenant = ?", [name]) {
        (usage.openUploads, usage.announcedBytes) = (try value(row, "open"), try value(row, "announced"))
      }
      usage.expectedBytes = try db.first(Self.expected(db.dialect), [name]) ?? 0
      let jobs = "SELECT state, count(*) AS jobs FROM jobs WHERE state IN ('queued', 'running') AND tenant = ?"
      for row in try db.rows(jobs + " GROUP BY state", [name]) {
        let count: Int64 = try value(row, "jobs")
        if try value(row, "state") == "running" { usage.runningJobs = count } else { usage.queuedJobs = count }
      }
      usage.jobSecondsToday = try Catalog.jobSeconds(through: day, db)[tenant] ?? 0
      return usage
    }
  }
}

extension Catalog {
  /// Returns what every tenant has stored.
  package func storedByTenant() throws(StorageError) -> [Tenant: TenantUsage] {
    try read { db in
      let rows = try db.rows("SELECT tenant, recordings, bytes FROM usage WHERE recordings > 0 OR bytes > 0")
      return Dictionary(
        try rows.map { row in
          var usage = TenantUsage()
          (usage.recordings, usage.storedBytes) = (try value(row, "recordings"), try value(row, "bytes"))
          return (try tenant(row), usage)
        }, uniquingKeysWith: { $1 })
    }
  }

  /// Returns the seconds for which each tenant's jobs have run from today (UTC) through `day`, in days since 1970. That
  /// is later than today if the system's clock was set back.
  package func jobSeconds(through day: Int64 = 0) throws(StorageError) -> [Tenant: Double] {
    try read { try Self.jobSeconds(through: day, $0) }
  }

  /// Forgets on which days jobs ran that ended before today.
  package func forgetJobSeconds() throws(StorageError) {
    try write(.statementLocks) { _ = try $0.run("DELETE FROM job_seconds WHERE day < \($0.dialect.today)") }
  }

  fileprivate static func jobSeconds(through day: Int64, _ db: CatalogTransaction) throws -> [Tenant: Double] {
    let today = db.dialect.today
    let rows = try db.rows(
      "SELECT tenant, milliseconds FROM job_seconds WHERE day >= \(today) AND (day <= \(today) OR day <= ?)", [day])
    return Dictionary(
      try rows.map { (try tenant($0), Double(try value($0, "milliseconds") as Int64) / 1000) }, uniquingKeysWith: +)
  }

  /// Throws `.limitReached` if a tenant has more bytes than it may, in the transaction that has stored them.
  static func checkBytes(_ limits: StoredLimits?, of tenant: Tenant, _ db: CatalogTransaction) throws {
    try check(limits.map { StoredLimits(bytes: $0.bytes) }, of: tenant, db)
  }

  /// The same, also for recordings.
  static func check(_ limits: StoredLimits?, of tenant: Tenant, _ db: CatalogTransaction) throws {
    guard let limits, limits.recordings != nil || limits.bytes != nil else { return }
    let row = try db.row("SELECT recordings, bytes FROM usage WHERE tenant = ?", [tenant.name])
    guard let row else { return }
    if let limit = limits.recordings, try value(row, "recordings") > limit {
      throw StorageError.limitReached("recordings", limit: limit)
    }
    if let limit = limits.bytes, try value(row, "bytes") > limit {
      throw StorageError.limitReached("stored_bytes", limit: limit)
    }
  }
}
