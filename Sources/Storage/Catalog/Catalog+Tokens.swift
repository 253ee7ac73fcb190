/// A token for one upload, at the moment when it is used.
package struct UploadToken: Sendable, Equatable {
  /// The token's ID.
  package let id: String
  /// When it ends.
  package let expiresAt: Timestamp

  /// Creates a token from its parts.
  package init(id: String, expiresAt: Timestamp) { (self.id, self.expiresAt) = (id, expiresAt) }
}

extension Catalog {
  /// Records, in the transaction that inserts what a token was for, that it has been used. Throws `.tokenIsSpent` if it
  /// was used before.
  static func spend(_ token: UploadToken?, _ db: CatalogTransaction) throws {
    guard let token else { return }
    let count = try db.run(
      "INSERT INTO spent_tokens (id, expires_at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
      [token.id, token.expiresAt.milliseconds])
    guard count == 1 else { throw StorageError.tokenIsSpent }
  }

  /// Whether a token has been used.
  package func isSpent(_ token: UploadToken) throws(StorageError) -> Bool {
    try read { db in
      try db.first("SELECT EXISTS (SELECT 1 FROM spent_tokens WHERE id = ?)", [token.id], as: Bool.self) ?? false
    }
  }

  /// Forgets the tokens that ended before `instant`, which can't be used anyway.
  package func forgetSpentTokens(before instant: Timestamp) throws(StorageError) {
    try write(.statementLocks) { db in
      try Self.sweep("spent_tokens", where: "expires_at < ?", [instant.milliseconds], db)
    }
  }
}

extension TenantCatalog {
  /// Throws `.tokenIsSpent` if a token has been used.
  package func check(_ token: UploadToken?) throws(StorageError) {
    if let token, try whole.isSpent(token) { throw .tokenIsSpent }
  }
}
