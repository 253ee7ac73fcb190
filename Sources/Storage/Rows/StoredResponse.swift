/// The response to a request that had an idempotency key. A repetition of the request gets the same response.
package struct StoredResponse: Sendable, Equatable {
  /// Whose request it answered. Set when the row is inserted.
  package internal(set) var tenant = Tenant.none
  /// The method and path; the same key with another scope is a different key.
  package let scope: String
  /// The key chosen by the client.
  package let key: String
  /// A digest of the request; the same key with another fingerprint is a different request.
  package let fingerprint: String
  /// The three-digit status.
  package let status: Int
  /// The response's `Location`.
  package let location: String
  /// The response's body, in JSON.
  package let body: String
  /// When the response was given.
  package let createdAt: Timestamp

  /// Creates an answer from its parts.
  package init(
    scope: String, key: String, fingerprint: String, status: Int, location: String, body: String,
    createdAt: Timestamp
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
