import HTTP
import Storage

/// Jobs and recordings as they were last answered: an object that is polled costs no query and no encoding until
/// something has changed, and one that many wait for is read once for all of them.
///
/// A miss costs an encoding and, if rows have changed, a read transaction of SQLite, together some 60 µs on a worker
/// queue; a hit costs a lock and a look-up.
final class DocumentTable: Sendable {
  private let jobs: SharedDocuments<JobID, Job, JobSnapshot>
  private let recordings: SharedDocuments<RecordingID, Recording, JSONDocument>

  init(catalog: Catalog, live: LiveJobs, work: WorkQueue, base: BasePath) {
    jobs = SharedDocuments(
      catalog: catalog, live: live, work: work, liveJob: { live[$0] }, read: { try catalog.job($0) },
      make: { try JobSnapshot(JobDocument($0, live: $1, base: base)) })
    recordings = SharedDocuments(
      catalog: catalog, live: live, work: work, liveJob: { live.job(writing: $0) }, read: { try catalog.recording($0) },
      make: { try JSONDocument(RecordingDocument($0, live: $1)) })
  }

  /// The Job as it is now, where that needs no look at the catalog.
  func known(_ id: JobID) -> JSONDocument? { jobs.known(id)?.document }

  /// The Recording as it is now, where that needs no look at the catalog.
  func known(_ id: RecordingID) -> JSONDocument? { recordings.known(id) }

  /// The Job as it is now; nil where there is none.
  func job(_ id: JobID) async throws -> JSONDocument? { try await jobs.value(id)?.document }

  /// The Job as it is now, with how far it is; nil where there is none.
  func snapshot(_ id: JobID) async throws -> JobSnapshot? { try await jobs.value(id) }

  /// The Recording as it is now; nil where there is none.
  func recording(_ id: RecordingID) async throws -> JSONDocument? { try await recordings.value(id) }
}
