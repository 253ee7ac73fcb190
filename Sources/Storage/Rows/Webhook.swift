/// A notification to send when a job ends. It exists from the request for the job until it is delivered or given up on.
package struct Webhook: Sendable, Equatable {
  /// The job that it reports.
  package let job: JobID
  /// The URL that the finished Job is sent to; untrusted.
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
}
