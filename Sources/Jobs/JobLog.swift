import Storage

/// Where the queue of jobs writes what becomes of them.
package protocol JobLog: Sendable {
  /// Writes the line of a job that has ended.
  func job(_ job: Job)
  /// Writes something an operator may want to know.
  func notice(_ message: String, _ metadata: [String: String])
  /// Writes something that went wrong.
  func failure(_ message: String, _ metadata: [String: String])
}
