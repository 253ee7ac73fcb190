/// Where the sender writes the outcome of its calls.
package protocol WebhookLog: Sendable {
  /// Writes something an operator may want to know.
  func notice(_ message: String, _ metadata: [String: String])
  /// Writes something that went wrong.
  func failure(_ message: String, _ metadata: [String: String])
  /// Writes something that went wrong, and the error behind it.
  func failure(_ message: String, _ metadata: [String: String], _ error: any Error)
}
