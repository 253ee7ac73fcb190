/// The answer to a request that had a key of the client's: what a repeat of that request is answered.
public struct KeptAnswer: Sendable, Equatable {
  /// Method and path: the same key for another thing is another key.
  public let scope: String
  /// The client's own word.
  public let key: String
  /// What the request asked for, as a digest: another fingerprint under the same key is another request.
  public let fingerprint: String
  /// Three digits.
  public let status: Int
  /// The answer's `Location`.
  public let location: String
  /// JSON.
  public let body: String
  /// When it was given.
  public let createdAt: Timestamp

  /// An answer of these parts.
  public init(
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
