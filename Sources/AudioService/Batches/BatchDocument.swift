import HTTP
import Jobs
import Storage

/// The Batch object of the API.
struct BatchDocument: Encodable, Sendable {
  var id, operation, state: String
  var total, succeeded, failed, cancelled: Int
  /// 0 … 1.
  var progress: Double
  var createdAt: String
  @Nullable var finishedAt: String?

  /// `live`: how far its running jobs are, as the sum of their fractions; nil if none runs.
  init(_ batch: Batch, live: Double?) {
    (id, operation, state) = (batch.id.text, batch.kind.rawValue, batch.state.rawValue)
    (total, succeeded, failed, cancelled) = (batch.total, batch.succeeded, batch.failed, batch.cancelled)
    let share = (Double(batch.ended) + (live ?? 0)) / Double(max(batch.total, 1))
    progress = batch.finishedAt == nil ? min(share, 1) : 1
    createdAt = batch.createdAt.rfc3339
    finishedAt = batch.finishedAt?.rfc3339
  }
}

/// A page of batches.
struct BatchList: Encodable, Sendable {
  var batches: [BatchDocument]
  @Nullable var nextCursor: String?
}

/// A Batch at one moment.
struct BatchSnapshot: Sendable {
  let document: JSONDocument
  let hasEnded: Bool
  private let state: JobState
  /// In thousandths.
  let position: Int

  init(_ batch: Batch, live: Double?) throws {
    let value = BatchDocument(batch, live: live)
    document = try JSONDocument(value)
    (state, hasEnded) = (batch.state, batch.finishedAt != nil)
    position = Int((value.progress * 1000).rounded(.down))
  }

  /// Whether there is news for someone who has seen `other`: another state, or a hundredth more.
  func isNews(after other: BatchSnapshot) -> Bool { state != other.state || position >= other.position + 10 }
}
