import Storage

/// Proves that a node of this cluster names the address at which others find what its attempt writes. Messages between
/// nodes pass through the database, where everyone who may connect to it can send one.
package protocol AddressProof: Sendable {
  /// Returns the proof of `address`, `HOST:PORT`, for an attempt.
  func proof(of address: String, for token: AttemptToken) -> String

  /// Whether `proof` is that of `address` for the attempt.
  func isProof(_ proof: String, of address: String, for token: AttemptToken) -> Bool
}
