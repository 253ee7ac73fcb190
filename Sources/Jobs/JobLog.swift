import Storage

/// The log of the job queue.
package protocol JobLog: Sendable {
  /// Logs a job that has ended.
  func job(_ job: Job)
  /// Logs a fact that may interest an operator.
  func notice(_ message: String, _ metadata: [String: String])
  /// Logs an error.
  func failure(_ message: String, _ metadata: [String: String])
}
