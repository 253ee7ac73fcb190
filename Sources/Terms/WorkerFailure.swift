/// Why a worker failed.
package struct WorkerFailure: Codable, Sendable, Equatable {
  /// Stable code in snake_case.
  package var code: String
  /// A sentence for the client.
  package var detail: String
  /// Whether a retry may succeed: false if the file itself is at fault.
  package var retry: Bool

  /// Creates a failure.
  package init(code: String, detail: String, retry: Bool) {
    self.code = code
    self.detail = detail
    self.retry = retry
  }
}
