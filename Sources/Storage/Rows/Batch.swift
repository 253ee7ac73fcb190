/// The ID of a batch.
package typealias BatchID = Identifier<Batch>

/// The same work on many recordings, whose jobs begin one after the other, as places become free.
package struct Batch: Sendable, Equatable {
  /// The batch's ID.
  package let id: BatchID
  /// Whose recordings they are.
  package let tenant: Tenant
  /// The client that its jobs count toward when clients take turns.
  package let client: String
  /// The kind of its jobs.
  package let kind: JobKind
  /// The parameters of each job, in JSON.
  package let parameters: String
  /// Number of its recordings.
  package let total: Int
  /// Number of recordings, from the first one on, whose turn has come.
  package internal(set) var begun = 0
  /// Numbers of recordings whose job has ended, or that could have none.
  package internal(set) var succeeded = 0, failed = 0, cancelled = 0
  /// Whether it was canceled as a whole.
  package internal(set) var isCancelled = false
  /// When it was requested.
  package let createdAt: Timestamp
  /// When its last job ended.
  package internal(set) var finishedAt: Timestamp?

  /// Creates a batch with a new ID at the present `time` by the catalog's clock.
  package init(of tenant: Tenant, client: String, kind: JobKind, parameters: String, total: Int, at time: Timestamp) {
    self.init(
      id: BatchID(at: time), tenant: tenant, client: client, kind: kind, parameters: parameters, total: total,
      createdAt: time)
  }

  init(
    id: BatchID, tenant: Tenant, client: String, kind: JobKind, parameters: String, total: Int, createdAt: Timestamp
  ) {
    (self.id, self.tenant, self.client, self.kind) = (id, tenant, client, kind)
    (self.parameters, self.total, self.createdAt) = (parameters, total, createdAt)
  }

  /// Number of recordings that are done with.
  package var ended: Int { succeeded + failed + cancelled }

  /// `queued` until its first job begins, and then `running` until all have ended: `cancelled` if it was canceled as a
  /// whole, `failed` if at least one recording failed or was canceled, or else `succeeded`.
  package var state: JobState {
    if finishedAt == nil { return begun == 0 ? .queued : .running }
    return isCancelled ? .cancelled : succeeded == total ? .succeeded : .failed
  }

  /// The assignments, in SQL, that count one more recording that has ended in `state` at `time`. Both are expressions.
  package static func counting(_ state: String, at time: String) -> String {
    let counts = ["succeeded", "failed", "cancelled"].map { name in
      "\(name) = \(name) + CASE \(state) WHEN '\(name)' THEN 1 ELSE 0 END"
    }
    let end = "finished_at = CASE WHEN succeeded + failed + cancelled + 1 = total THEN \(time) END"
    return (counts + [end]).joined(separator: ", ")
  }
}
