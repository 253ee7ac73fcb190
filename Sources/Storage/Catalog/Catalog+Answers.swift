extension Catalog {
  /// Returns the answer stored under a tenant's key, or nil.
  func answer(of tenant: Tenant, scope: String, key: String) throws(StorageError) -> StoredResponse? {
    try read { try Self.answer(of: tenant, scope: scope, key: key, $0) }
  }

  static func answer(
    of tenant: Tenant, scope: String, key: String, _ db: CatalogTransaction
  ) throws -> StoredResponse? {
    try db.row("SELECT * FROM answers WHERE tenant = ? AND scope = ? AND key = ?", [tenant.name, scope, key]).map(
      AnswerRow.init(row:))?.answer
  }

  /// Deletes the answers given before `instant` and returns their number.
  @discardableResult
  package func removeAnswers(before instant: Timestamp) throws(StorageError) -> Int {
    try write(.statementLocks) { db in
      try Self.forgetHeldKeys(before: instant, db)
      return try Self.sweep("answers", where: "created_at < ?", [instant.milliseconds], db)
    }
  }

  /// Deletes the answer stored under a tenant's key, if there is one.
  func removeAnswer(of tenant: Tenant, scope: String, key: String) throws(StorageError) {
    try write(.statementLocks) { db in
      try db.run("DELETE FROM answers WHERE tenant = ? AND scope = ? AND key = ?", [tenant.name, scope, key])
    }
  }

  /// Stores an answer for a tenant in the transaction that performs the operation, replacing an older one with the same
  /// key. Throws `.keyIsLost` as `settleKey` does.
  func keep(_ answer: StoredResponse?, for tenant: Tenant, _ db: CatalogTransaction) throws {
    guard var answer else { return }
    try settleKey(of: answer, for: tenant, db)
    answer.tenant = tenant
    try AnswerRow(answer: answer).insertOrReplace(db)
  }
}

/// A stored answer as a row of `answers`.
private struct AnswerRow: TableRow {
  static let table = "answers"
  static let key = ["tenant", "scope", "key"]

  let answer: StoredResponse

  init(answer: StoredResponse) { self.answer = answer }

  init(row: SQLRow) throws {
    var answer = StoredResponse(
      scope: try value(row, "scope"), key: try value(row, "key"), fingerprint: try value(row, "fingerprint"),
      status: try value(row, "status"), location: try value(row, "location"), body: try value(row, "body"),
      createdAt: Timestamp(milliseconds: try value(row, "created_at")))
    answer.tenant = try tenant(row)
    self.answer = answer
  }

  func encode(to container: inout ColumnValues) throws {
    container["tenant"] = answer.tenant.name
    container["scope"] = answer.scope
    container["key"] = answer.key
    container["fingerprint"] = answer.fingerprint
    container["status"] = answer.status
    container["location"] = answer.location
    container["body"] = answer.body
    container["created_at"] = answer.createdAt.milliseconds
  }
}
