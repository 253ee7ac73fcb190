/// What a tenant has and has used, as counted by the catalog.
package struct TenantUsage: Sendable, Equatable {
  /// Number of recordings.
  package var recordings: Int64 = 0
  /// Total length of what is kept for the tenant, in bytes: its recordings' audio files, working copies, waveforms,
  /// maps of the sound, conversions and labels, and its noise profiles.
  package var storedBytes: Int64 = 0
  /// Number of unfinished resumable uploads.
  package var openUploads: Int64 = 0
  /// Total announced length of these, in bytes.
  package var announcedBytes: Int64 = 0
  /// Total expected length of what unfinished jobs make, in bytes.
  package var expectedBytes: Int64 = 0
  /// Number of waiting jobs.
  package var queuedJobs: Int64 = 0
  /// Number of running jobs.
  package var runningJobs: Int64 = 0
  /// Seconds for which jobs have run today (UTC).
  package var jobSecondsToday = 0.0
}

extension TenantUsage {
  /// An SQL expression: the bytes of the files that `row`, a row of `recordings`, names.
  package static func fileBytes(of row: String) -> String {
    let columns = ["bytes", "working_bytes", "waveform_bytes", "map_bytes"]
    return "(" + columns.map { "coalesce(\(row).\($0), 0)" }.joined(separator: " + ") + ")"
  }
}

/// Limits on what a tenant may store, checked in the transaction that stores it.
package struct StoredLimits: Sendable, Equatable {
  /// Maximum number of recordings; nil for any.
  package var recordings: Int64?
  /// Maximum of `TenantUsage.storedBytes`; nil for any.
  package var bytes: Int64?

  /// Creates limits.
  package init(recordings: Int64? = nil, bytes: Int64? = nil) { (self.recordings, self.bytes) = (recordings, bytes) }

  /// The limit on bytes alone.
  fileprivate var onlyBytes: StoredLimits { StoredLimits(bytes: bytes) }
}

extension TenantCatalog {
  /// Returns what the tenant has and has used, its jobs' seconds as in `jobSeconds`. Reads its unfinished jobs and
  /// uploads.
  package func usage(through day: Int64 = 0) throws(StorageError) -> TenantUsage {
    try whole.read { db in
      var usage = TenantUsage()
      let name = tenant.name
      if let row = try db.row("SELECT recordings, bytes FROM usage WHERE tenant = ?", [name]) {
        (usage.recordings, usage.storedBytes) = (try value(row, "recordings"), try value(row, "bytes"))
      }
      let uploads = """
        SELECT count(*) AS open, CAST(coalesce(sum(coalesce(length, "offset")), 0) AS bigint) AS announced
        FROM uploads WHERE recording IS NULL AND tenant = ?
        """
      if let row = try db.row(uploads, [name]) {
        (usage.openUploads, usage.announcedBytes) = (try value(row, "open"), try value(row, "announced"))
      }
      usage.expectedBytes = try Catalog.expectedBytes(of: tenant, db)
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

  /// Adds to the seconds for which tenants' jobs have run today.
  package func add(jobSeconds: [Tenant: Double]) throws(StorageError) {
    try write(.statementLocks) { db in
      // In this order, so that two calls don't wait for each other in a circle.
      for (tenant, seconds) in jobSeconds.sorted(by: { $0.key.name < $1.key.name }) {
        try db.run(
          """
          INSERT INTO job_seconds (tenant, day, milliseconds) VALUES (?, \(db.dialect.today), ?)
          ON CONFLICT (tenant, day) DO UPDATE SET milliseconds = job_seconds.milliseconds + excluded.milliseconds
          """, [tenant.name, Int64((seconds * 1000).rounded())])
      }
    }
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

  /// Bytes that the results of a tenant's unfinished jobs are expected to take.
  fileprivate static func expectedBytes(of tenant: Tenant, _ db: CatalogTransaction) throws -> Int64 {
    try db.first(
      """
      SELECT CAST(coalesce(sum(expected_bytes), 0) AS bigint) FROM jobs
      WHERE state IN ('queued', 'running') AND tenant = ?
      """, [tenant.name]) ?? 0
  }

  /// Inserts a job that makes no recording. Throws `.limitReached` if the tenant would have more bytes than it may.
  func plan(_ job: Job, of tenant: Tenant, within limits: StoredLimits?, _ db: CatalogTransaction) throws {
    if job.expectedBytes > 0 { try Self.check(limits?.onlyBytes, of: tenant, planning: [job], db) }
    try queue(job, of: tenant, db)
  }

  /// Throws `.limitReached` if a tenant has more bytes than it may, in the transaction that has stored them.
  static func checkBytes(_ limits: StoredLimits?, of tenant: Tenant, _ db: CatalogTransaction) throws {
    try check(limits?.onlyBytes, of: tenant, db)
  }

  /// Throws `.limitReached` if a tenant has more bytes or recordings than it may. `jobs` are about to be inserted: if
  /// they are expected to add bytes, so are all unfinished jobs of the tenant.
  static func check(
    _ limits: StoredLimits?, of tenant: Tenant, planning jobs: [Job] = [], _ db: CatalogTransaction
  ) throws {
    guard let limits, limits.recordings != nil || limits.bytes != nil else { return }
    // Locked, so that others of the tenant who plan at the same time wait for this one's jobs.
    let lock = jobs.isEmpty ? "" : db.dialect.changingRows
    let row = try db.row("SELECT recordings, bytes FROM usage WHERE tenant = ?\(lock)", [tenant.name])
    guard let row else { return }
    if let limit = limits.recordings, try value(row, "recordings") > limit {
      throw StorageError.limitReached("recordings", limit: limit)
    }
    guard let limit = limits.bytes else { return }
    let planned = jobs.reduce(0) { $0 + $1.expectedBytes }
    let expected = planned > 0 ? planned + (try expectedBytes(of: tenant, db)) : 0
    if try value(row, "bytes") + expected > limit { throw StorageError.limitReached("stored_bytes", limit: limit) }
  }
}
