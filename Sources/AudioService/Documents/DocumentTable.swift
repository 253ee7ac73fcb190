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
  /// The documents of rows that lists have read. A row says itself whether its document is current.
  private let listed = Cache<Owned<Recording>, Int, (row: Recording, bytes: [UInt8])>(limit: 2048) { _ in 0 }

  init(catalog: Catalog, live: LiveJobs, work: WorkQueue, base: BasePath) {
    self.live = live
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

  /// Returns the encoded Recording of a row that has just been read.
  func bytes(of row: Recording) throws -> [UInt8] {
    let (key, job) = (Owned(row.id, of: row.tenant), live.job(writing: row.id))
    if job == nil, let known = listed[key], known.row == row { return known.bytes }
    let bytes = try JSONDocument.encoded(RecordingDocument(row, live: job))
    if job == nil { listed.keep((row, bytes), for: key, version: 0) }
    return bytes
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
