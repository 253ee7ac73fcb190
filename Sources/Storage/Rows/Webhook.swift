/// Whom to tell of a job's end. It exists from the request for the job until the news is delivered or given up.
package struct Webhook: Sendable, Equatable {
  /// The job it is about.
  package let job: JobID
  /// Where the finished Job is sent to; from a stranger.
  package let url: String
  /// How often that was tried.
  package var attempts: Int
  /// Not tried before, once the job has finished.
  package var notBefore: Timestamp

  /// One that was not tried yet.
  package init(job: JobID, url: String, attempts: Int = 0, notBefore: Timestamp = .now) {
    self.job = job
    self.url = url
    self.attempts = attempts
    self.notBefore = notBefore
  }
}
