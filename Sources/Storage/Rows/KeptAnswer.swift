/// The answer to a request that had a key of the client's: what a repeat of that request is answered.
package struct KeptAnswer: Sendable, Equatable {
  /// Method and path: the same key for another thing is another key.
  package let scope: String
  /// The client's own word.
  package let key: String
  /// What the request asked for, as a digest: another fingerprint under the same key is another request.
  package let fingerprint: String
  /// Three digits.
  package let status: Int
  /// The answer's `Location`.
  package let location: String
  /// JSON.
  package let body: String
  /// When it was given.
  package let createdAt: Timestamp

  /// An answer of these parts.
  package init(
    scope: String, key: String, fingerprint: String, status: Int, location: String, body: String,
    createdAt: Timestamp = .now
  ) {
    self.scope = scope
    self.key = key
    self.fingerprint = fingerprint
    self.status = status
    self.location = location
    self.body = body
    self.createdAt = createdAt
  }
}
