import GRDB

extension Catalog {
  /// The answer that was kept under a key, nil where there is none.
  package func answer(scope: String, key: String) throws(StorageError) -> KeptAnswer? {
    try read { db in
      try AnswerRow.fetchOne(
        db.cachedStatement(sql: "SELECT * FROM answers WHERE scope = ? AND key = ?"), arguments: [scope, key])?.answer
    }
  }

  /// Forgets the answers given before `instant`; how many.
  @discardableResult
  package func removeAnswers(before instant: Timestamp) throws(StorageError) -> Int {
    try write { db in
      try db.execute(sql: "DELETE FROM answers WHERE created_at < ?", arguments: [instant.milliseconds])
      return db.changesCount
    }
  }

  /// Forgets the answer that was kept under a key, if there is one.
  package func removeAnswer(scope: String, key: String) throws(StorageError) {
    try write { db in
      try db.execute(sql: "DELETE FROM answers WHERE scope = ? AND key = ?", arguments: [scope, key])
    }
  }

  /// Keeps an answer in the transaction that does what it tells, in place of an older one under that key.
  static func keep(_ answer: KeptAnswer?, _ db: Database) throws {
    guard let answer else { return }
    try AnswerRow(answer: answer).insert(db, onConflict: .replace)
  }
}

/// A kept answer as a row of `answers`.
private struct AnswerRow: FetchableRecord, PersistableRecord {
  static let databaseTableName = "answers"

  let answer: KeptAnswer

  init(answer: KeptAnswer) { self.answer = answer }

  init(row: Row) throws {
    answer = KeptAnswer(
      scope: try value(row, "scope"), key: try value(row, "key"), fingerprint: try value(row, "fingerprint"),
      status: try value(row, "status"), location: try value(row, "location"), body: try value(row, "body"),
      createdAt: Timestamp(milliseconds: try value(row, "created_at")))
  }

  func encode(to container: inout PersistenceContainer) throws {
    container["scope"] = answer.scope
    container["key"] = answer.key
    container["fingerprint"] = answer.fingerprint
    container["status"] = answer.status
    container["location"] = answer.location
    container["body"] = answer.body
    container["created_at"] = answer.createdAt.milliseconds
  }
}
