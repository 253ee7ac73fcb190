import HTTP
import Jobs
import Storage

/// Caches encoded jobs and recordings, so that polling costs no query and no encoding until something changes, and one
/// read serves all waiting clients.
///
/// An entry is current while neither the catalog's write count nor the live jobs' change count has grown. A hit costs a
/// lock and a lookup; a miss costs an encoding and, if rows have changed, a query: about 60 µs on a worker queue.
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

  /// Returns the current Job if it's cached, or nil. Doesn't read the catalog.
  func known(_ id: JobID) -> JSONDocument? { jobs.known(id)?.document }

  /// Returns the current Recording if it's cached, or nil. Doesn't read the catalog.
  func known(_ id: RecordingID) -> JSONDocument? { recordings.known(id) }

  /// Returns the current Job, or nil if there is none.
  func job(_ id: JobID) async throws -> JSONDocument? { try await jobs.value(id)?.document }

  /// Returns the current Job together with its step, or nil if there is none.
  func snapshot(_ id: JobID) async throws -> JobSnapshot? { try await jobs.value(id) }

  /// Returns the current Recording, or nil if there is none.
  func recording(_ id: RecordingID) async throws -> JSONDocument? { try await recordings.value(id) }
}
