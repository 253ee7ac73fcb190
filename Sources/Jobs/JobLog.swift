import Storage

/// The log of the job queue.
package protocol JobLog: Sendable {
  /// Notes that an attempt at a job begins on this node. Brief.
  func began(_ job: Job)
  /// Logs a job that has ended.
  func job(_ job: Job)
  /// Logs a fact that may interest an operator.
  func notice(_ message: String, _ metadata: [String: String])
  /// Logs an error.
  func failure(_ message: String, _ metadata: [String: String])
}

extension JobLog {
  /// Does nothing.
  package func began(_ job: Job) {}
}
