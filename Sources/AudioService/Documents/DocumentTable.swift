import HTTP
import Jobs
import Storage

/// The most recently encoded jobs and recordings: polling an object costs no query and no encoding until something
/// changes, and one read serves all the clients that wait for it.
///
/// Whether something has is told by two counters, of the catalog's writes and of the live jobs' steps, whatever they
/// were about: coarse, but with nothing to forget. A miss costs an encoding and, where rows have changed, a read
/// transaction of SQLite, together some 60 µs on a worker queue; a hit a lock and a look-up.
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

  /// Returns the current Job, or nil if there is none.
  func job(_ id: JobID) async throws -> JSONDocument? { try await jobs.value(id)?.document }

  /// Returns the current Job together with its step, or nil if there is none.
  func snapshot(_ id: JobID) async throws -> JobSnapshot? { try await jobs.value(id) }

  /// Returns the current Recording, or nil if there is none.
  func recording(_ id: RecordingID) async throws -> JSONDocument? { try await recordings.value(id) }
}
