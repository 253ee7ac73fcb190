/// Whom to tell of a job's end. It exists from the request for the job until the news is delivered or given up.
public struct Webhook: Sendable, Equatable {
  /// The job it is about.
  public let job: JobID
  /// Where the finished Job is sent to; from a stranger.
  public let url: String
  /// How often that was tried.
  public var attempts: Int
  /// Not tried before, once the job has finished.
  public var notBefore: Timestamp

  /// One that was not tried yet.
  public init(job: JobID, url: String, attempts: Int = 0, notBefore: Timestamp = .now) {
    self.job = job
    self.url = url
    self.attempts = attempts
    self.notBefore = notBefore
  }
}
