import HTTP
import Jobs
import Storage

/// Caches encoded jobs and recordings, so that polling costs no query and no encoding until something changes, and one
/// read serves all waiting clients.
///
/// An entry is current while neither the catalog's write count nor the live jobs' change count has grown. A hit costs a
/// lock and a lookup; a miss costs an encoding and, if rows have changed, a query: about 60 µs on a worker queue.
final class DocumentTable: Sendable {
  private let jobs: SharedDocuments<Owned<Job>, Job, JobSnapshot>
  private let recordings: SharedDocuments<Owned<Recording>, Recording, JSONDocument>
  private let live: LiveJobs
  private let listed: Cache<Owned<Recording>, UInt64, ListedRecording>

  init(catalog: Catalog, live: LiveJobs, work: WorkQueue, base: BasePath) {
    self.live = live
    listed = Cache(limit: 2048) { catalog.changeCount(of: $0.id) }
    jobs = SharedDocuments(
      catalog: catalog, live: live, work: work, liveJob: { live[$0.id] },
      read: { try catalog.of($0.tenant).job($0.id) },
      make: { try JobSnapshot(JobDocument($0, live: $1, base: base), of: $0) })
    recordings = SharedDocuments(
      catalog: catalog, live: live, work: work, liveJob: { live.job(writing: $0.id) },
      read: { try catalog.of($0.tenant).recording($0.id) }, make: { try JSONDocument(RecordingDocument($0, live: $1)) })
  }

  /// Returns the current Job of a tenant if it's cached, or nil. Doesn't read the catalog.
  func known(_ id: JobID, of tenant: Tenant) -> JSONDocument? { jobs.known(Owned(id, of: tenant))?.document }

  /// Returns the current Recording of a tenant if it's cached, or nil. Doesn't read the catalog.
  func known(_ id: RecordingID, of tenant: Tenant) -> JSONDocument? { recordings.known(Owned(id, of: tenant)) }

  /// Returns the recordings of a tenant with these IDs, which have just been read, as a list shows them. If any isn't
  /// cached, calls `read`, and encodes the rows that it returns.
  func list(
    _ ids: [RecordingID], of tenant: Tenant, _ read: () throws -> [Recording]
  ) throws -> [ListedRecording] {
    let keys = ids.map { Owned($0, of: tenant) }
    // Before the rows, which are finished before their jobs leave the live ones.
    let jobs = live.jobs(writing: ids)
    let known = listed.values(of: keys).compactMap(\.self)
    if known.count == ids.count {
      return try known.map { try jobs[$0.row.id] == nil ? $0 : ListedRecording($0.row, live: jobs[$0.row.id]) }
    }
    let versions = Dictionary(keys.map { ($0, listed.version($0)) }) { first, _ in first }
    return try read().map { row in
      let made = try ListedRecording(row, live: jobs[row.id])
      let key = Owned(row.id, of: tenant)
      if jobs[row.id] == nil, let version = versions[key] { listed.keep(made, for: key, version: version) }
      return made
    }
  }

  /// Returns the current Job, or nil if the tenant has none with that ID.
  func job(_ id: JobID, of tenant: Tenant) async throws -> JSONDocument? {
    try await snapshot(id, of: tenant)?.document
  }

  /// Returns the current Job together with its step, or nil if the tenant has none with that ID.
  func snapshot(_ id: JobID, of tenant: Tenant) async throws -> JobSnapshot? {
    try await jobs.value(Owned(id, of: tenant))
  }

  /// Returns the current Recording, or nil if the tenant has none with that ID.
  func recording(_ id: RecordingID, of tenant: Tenant) async throws -> JSONDocument? {
    try await recordings.value(Owned(id, of: tenant))
  }
}

/// A recording in a list. It is a class because a list would otherwise copy fifty rows while others wait for the cache.
final class ListedRecording: Sendable {
  let row: Recording
  /// The encoded Recording.
  let bytes: [UInt8]

  init(_ row: Recording, live: LiveJob?) throws {
    self.row = row
    bytes = try JSONDocument.encoded(RecordingDocument(row, live: live))
  }
}
