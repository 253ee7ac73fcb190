/// A notification to send when a job or a batch ends. It exists from the request until it is delivered or given up on.
package struct Webhook: Sendable, Equatable {
  /// The job that it reports, or the batch: a batch's ID as that of a job.
  package let job: JobID
  /// The URL that the finished Job or Batch is sent to; untrusted.
  package let url: String
  /// Number of attempts so far.
  package var attempts: Int
  /// The earliest time of the next attempt, once the job has finished, by the catalog's clock.
  package var notBefore: Timestamp

  /// The request's `traceparent` (W3C Trace Context), to be sent along; nil if it had none.
  package let traceparent: String?

  /// Creates a webhook, by default without any attempts so far.
  package init(
    job: JobID, url: String, attempts: Int = 0, notBefore: Timestamp, traceparent: String? = nil
  ) {
    self.job = job
    self.url = url
    self.attempts = attempts
    self.notBefore = notBefore
    self.traceparent = traceparent
  }

  /// The batch that it reports, if it's that of one.
  package var batch: BatchID? { BatchID(job.text) }
}

extension Identifier<Job> {
  /// The ID of a batch in the place of a job's, for its webhook.
  package init(_ batch: BatchID) {
    guard let id = Self(batch.text) else { preconditionFailure("both are of one form") }
    self = id
  }
}
