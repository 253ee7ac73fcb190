// Which requests with an idempotency key are in progress, for processes that share a catalog. A row of `held_keys` is a
// lease: inserted before the request is carried out, prolonged while it is, and deleted in the transaction that stores
// its answer. That transaction fails unless its process still holds the key, so a process that was stopped for longer
// than its lease doesn't carry a request out that another has taken over.
//
// Other work that one process at a time should do has keys under scopes of its own, without answers, such as the end of
// an upload.

/// What a process finds that wants to carry out a request under a key.
package enum KeyHold: Sendable, Equatable {
  /// It holds the key. If the request was carried out before, with the answer given then.
  case held(StoredResponse?)
  /// Another one holds the key.
  case inUse
}

extension TenantCatalog {
  /// Takes a key for this process, unless another one holds it. Call `releaseKey` in the end, and `renewKeys`
  /// meanwhile.
  package func holdKey(scope: String, key: String) throws(StorageError) -> KeyHold {
    try whole.holdKey(of: tenant, scope: scope, key: key)
  }

  /// Gives a key back, if this process still holds it.
  package func releaseKey(scope: String, key: String) throws(StorageError) {
    try whole.releaseKey(of: tenant, scope: scope, key: key)
  }
}

extension Catalog {
  /// The terms of leases that aren't jobs'.
  var leaseTerms: LeaseHolder.Terms { holder.terms ?? LeaseHolder.Terms() }

  /// The seconds after which held keys must be renewed. Only if other processes share the catalog: otherwise nothing
  /// needs to be held.
  package var keyRenewalSeconds: Double { leaseTerms.renewalSeconds }

  /// The seconds after which the keys of a process that is gone can be taken.
  package var keyLeaseSeconds: Double { leaseTerms.seconds }

  fileprivate func holdKey(of tenant: Tenant, scope: String, key: String) throws(StorageError) -> KeyHold {
    try write(.statementLocks, isAudited: false) { db in
      let now = try now(db)
      let count = try db.run(
        """
        INSERT INTO held_keys (tenant, scope, key, holder, lease_until) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (tenant, scope, key) DO UPDATE SET holder = excluded.holder, lease_until = excluded.lease_until
          WHERE held_keys.lease_until < ?
        """,
        [tenant.name, scope, key, holder.node, (now + leaseTerms.seconds).milliseconds, now.milliseconds])
      // This is read only once the key is held, so it includes the answer of the process that held the key before.
      return count == 1 ? .held(try Self.answer(of: tenant, scope: scope, key: key, db)) : .inUse
    }
  }

  fileprivate func releaseKey(of tenant: Tenant, scope: String, key: String) throws(StorageError) {
    try write(.statementLocks, isAudited: false) { _ = try dropKey(of: tenant, scope: scope, key: key, $0) }
  }

  /// Prolongs the leases of all keys that this process holds.
  package func renewKeys() throws(StorageError) {
    // As in `renew`.
    _ = try engine.write(.statementLocks) {
      let db = CatalogTransaction($0)
      let end = try now(db) + leaseTerms.seconds
      return try db.run("UPDATE held_keys SET lease_until = ? WHERE holder = ?", [end.milliseconds, holder.node])
    }
  }

  /// Gives a key back. Returns whether this process held it.
  private func dropKey(of tenant: Tenant, scope: String, key: String, _ db: CatalogTransaction) throws -> Bool {
    try db.run(
      "DELETE FROM held_keys WHERE tenant = ? AND scope = ? AND key = ? AND holder = ?",
      [tenant.name, scope, key, holder.node]) == 1
  }

  /// Gives back the key of an answer that is stored in this transaction. Throws `.keyIsLost` if other processes share
  /// the catalog and this one doesn't hold the key. Does nothing for an answer whose key no client can use.
  func settleKey(of answer: StoredResponse, for tenant: Tenant, _ db: CatalogTransaction) throws {
    guard isShared, !answer.key.isEmpty else { return }
    guard try dropKey(of: tenant, scope: answer.scope, key: answer.key, db) else { throw StorageError.keyIsLost }
  }

  /// Deletes the keys of processes that ended before `instant` without giving them back.
  static func forgetHeldKeys(before instant: Timestamp, _ db: CatalogTransaction) throws {
    try sweep("held_keys", where: "lease_until < ?", [instant.milliseconds], db)
  }
}
