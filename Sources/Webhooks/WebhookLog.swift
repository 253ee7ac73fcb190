/// The log that the sender writes the outcomes of its calls to.
package protocol WebhookLog: Sendable {
  /// Logs an event.
  func notice(_ message: String, _ metadata: [String: String])
  /// Logs a failure.
  func failure(_ message: String, _ metadata: [String: String])
  /// Logs a failure and its cause.
  func failure(_ message: String, _ metadata: [String: String], _ error: any Error)
}
