/// A notification to send when a job ends. It exists from the request for the job until it is delivered or given up on.
package struct Webhook: Sendable, Equatable {
  /// The job that it reports.
  package let job: JobID
  /// The URL that the finished Job is sent to; untrusted.
  package let url: String
  /// Number of attempts so far.
  package var attempts: Int
  /// The earliest time of the next attempt, once the job has finished.
  package var notBefore: Timestamp

  /// Creates a webhook, by default without any attempts so far.
  package init(job: JobID, url: String, attempts: Int = 0, notBefore: Timestamp = .now) {
    self.job = job
    self.url = url
    self.attempts = attempts
    self.notBefore = notBefore
  }
}
