import Storage

/// Sends GETs to other nodes, with libcurl. Each call has deadlines, and isn't repeated. Redirects aren't followed.
/// Thread-safe.
package final class NodeClient: Sendable {
  private let connections = S3Connections()
  private let settings: S3Settings
  private let seconds: Double
  private let answerLimit: Int

  /// Creates a client whose calls have `connectSeconds` to connect and `seconds` until the last byte of an answer of at
  /// most `answerLimit` bytes.
  package init(connectSeconds: Double, seconds: Double, answerLimit: Int) {
    var settings = S3Settings()
    (settings.connectSeconds, settings.requestSeconds) = (connectSeconds, seconds)
    (self.settings, self.seconds, self.answerLimit) = (settings, seconds, answerLimit)
  }

  /// Returns the answer's fields, with names in lower case, and its content. `fields` are those of the request.
  ///
  /// Throws `.refused` if the status isn't 200, `.malformedAnswer` if the answer is too long, `.unreachable`,
  /// `.timedOut`, or `.libraryMissing`. Blocks.
  package func get(
    _ url: String, fields: [(name: String, value: String)]
  ) throws(S3Error) -> (fields: [String: String], content: [UInt8]) {
    let handle = try connections.take()
    defer { connections.give(handle) }
    let (outcome, _) = S3Call.send(
      S3Request(method: .get, answerLimit: answerLimit), to: url, fields: fields, .memory, over: handle,
      of: connections, seconds: seconds, settings: settings)
    switch outcome {
    case .failed(let error, _): throw error
    case .answered(let answer):
      guard answer.status == 200 else { throw .refused(status: answer.status, code: nil, message: nil) }
      return (answer.fields, answer.body)
    }
  }
}
