/// What may be removed from a recording's folder, according to the catalog.
package enum Garbage: Sendable, Hashable {
  /// All files of an attempt that isn't the result of its job.
  case files(of: AttemptToken, folder: RecordingID)
  /// A file that no row names any more.
  case object(ObjectKey)

  /// The recording in whose folder the files are.
  package var folder: RecordingID {
    switch self {
    case .files(_, let folder): folder
    case .object(let key): key.recording
    }
  }

  /// Whether this is a recording's description.
  package var isDescription: Bool { if case .object(let key) = self { key.descriptionVersion != nil } else { false } }

  fileprivate var order: String {
    switch self {
    case .files(let token, _): "attempt \(token.job) \(token.name)"
    case .object(let key): "object \(key)"
    }
  }

  /// Whether a file with that name in the folder is meant.
  package func includes(_ name: String) -> Bool {
    switch self {
    case .files(let token, _): name.contains("-\(token.name).")
    case .object(let key): name == key.name
    }
  }
}

extension Catalog {
  /// Records that an object may be removed from `due` on.
  static func addGarbage(_ key: ObjectKey, due: Timestamp, _ db: CatalogTransaction) throws {
    try addGarbage(key.description, due: due, db)
  }

  /// Records that any object of a bucket may be removed from `due` on.
  static func addGarbage(_ key: String, due: Timestamp, _ db: CatalogTransaction) throws {
    try db.run(
      "INSERT INTO garbage (object, due) VALUES (?, ?) ON CONFLICT (object) DO UPDATE SET due = excluded.due",
      [key, due.milliseconds])
  }

  /// Records that many objects may be removed from `due` on.
  static func addGarbage(_ keys: [String], due: Timestamp, _ db: CatalogTransaction) throws {
    let keys = keys.sorted()
    for start in stride(from: 0, to: keys.count, by: 100) {
      let batch = keys[start..<min(start + 100, keys.count)]
      let rows = Array(repeating: "(?, ?)", count: batch.count).joined(separator: ", ")
      try db.run(
        """
        INSERT INTO garbage (object, due) VALUES \(rows)
        ON CONFLICT (object) DO UPDATE SET due = excluded.due
        """, bound: batch.flatMap { [SQLValue.text($0), .integer(due.milliseconds)] })
    }
  }

  /// Returns what may be removed now of recordings, at most about `limit` rows. Unreadable rows are skipped.
  package func dueGarbage(limit: Int = 1000) throws(StorageError) -> [Garbage] {
    try read { db in
      let now = try now(db).milliseconds
      let attempts = try db.rows(
        "SELECT job, attempt, nonce, folder FROM attempts WHERE due <= ? ORDER BY due, job, attempt LIMIT ?",
        [now, limit])
      let objects = try db.rows(
        """
        SELECT object FROM garbage WHERE due <= ? AND substr(object, 1, 11) = 'recordings/'
        ORDER BY due, object LIMIT ?
        """, [now, limit]
      ).map { try value($0, "object") as String }
      return try Self.intact(attempts) { row in
        let token = AttemptToken(
          job: try identifier(row, "job"), attempt: try value(row, "attempt"), nonce: try value(row, "nonce"))
        guard AttemptToken.isNonce(token.nonce) else {
          throw StorageError.corrupt(column: "nonce", value: token.nonce)
        }
        return .files(of: token, folder: try identifier(row, "folder"))
      } + objects.compactMap { ObjectKey($0).map(Garbage.object) }
    }
  }

  /// Returns what `dueGarbage` does, and from now on no transaction can name these objects. Rows that another node is
  /// taking are skipped.
  package func takeGarbage(limit: Int = 1000) throws(StorageError) -> [Garbage] {
    let due = try dueGarbage(limit: limit)
    guard due.contains(where: { if case .object = $0 { true } else { false } }) else { return due }
    let taken = Set(try take("recordings/", limit: limit))
    return due.filter { if case .object(let key) = $0 { taken.contains(key.description) } else { true } }
  }

  /// Takes what is due of the objects whose keys begin with `prefix`, those first that were taken before.
  func take(_ prefix: String, limit: Int) throws(StorageError) -> [String] {
    try write(.statementLocks) { db in
      try db.rows(
        """
        UPDATE garbage SET due = 0 WHERE object IN (
          SELECT object FROM garbage WHERE due <= ? AND substr(object, 1, \(prefix.count)) = ?
          ORDER BY due, object LIMIT ?\(db.dialect.skippingLocked))
        RETURNING object
        """, [try now(db).milliseconds, prefix, limit]
      ).map { try value($0, "object") as String }
    }
  }

  /// Puts the removal of what is due off by a day.
  package func postpone(_ garbage: [Garbage]) throws(StorageError) {
    try write(.statementLocks) { db in
      let now = try now(db)
      let later = now + 86_400
      for garbage in garbage.sorted(by: { $0.order < $1.order }) {
        switch garbage {
        case .files(let token, _):
          try db.run(
            "UPDATE attempts SET due = ? WHERE job = ? AND attempt = ? AND nonce = ?",
            [later.milliseconds, token.job.text, token.attempt, token.nonce])
        case .object(let key):
          try db.run(
            "UPDATE garbage SET due = ? WHERE object = ? AND due <= ?",
            [later.milliseconds, key.description, now.milliseconds])
        }
      }
    }
  }

  /// Deletes the records of what has been removed, except of objects that were recorded again meanwhile.
  package func forget(_ removed: [Garbage]) throws(StorageError) {
    guard !removed.isEmpty else { return }
    try write(.statementLocks) { db in
      let now = try now(db).milliseconds
      // In the same order everywhere, so that nodes that forget the same rows don't wait for each other.
      for garbage in removed.sorted(by: { $0.order < $1.order }) {
        switch garbage {
        case .files(let token, _):
          try db.run(
            "UPDATE attempts SET due = NULL WHERE job = ? AND attempt = ? AND nonce = ?",
            [token.job.text, token.attempt, token.nonce])
        case .object(let key):
          try db.run("DELETE FROM garbage WHERE object = ? AND due <= ?", [key.description, now])
        }
      }
    }
  }
}

extension Catalog {
  /// Returns the files of all recorded attempts that write to a recording's folder, whether or not they are needed.
  /// Unreadable rows are skipped.
  func attempts(in folder: RecordingID) throws(StorageError) -> [Garbage] {
    try read { db in
      let rows = try db.rows("SELECT job, attempt, nonce FROM attempts WHERE folder = ?", [folder.text])
      return try Self.intact(rows) { row in
        let token = AttemptToken(
          job: try identifier(row, "job"), attempt: try value(row, "attempt"), nonce: try value(row, "nonce"))
        return .files(of: token, folder: folder)
      }
    }
  }

  /// Deletes at most `limit` records of attempts that ended more than a day ago and have no files to remove, and
  /// returns their number. Several nodes may do this at once: each deletes others.
  package func forgetAttempts(limit: Int = 1000) throws(StorageError) -> Int {
    try write(.statementLocks) { db in
      let identity = db.dialect.rowIdentity
      let old = try db.rows(
        """
        SELECT \(identity) AS row FROM attempts WHERE ended_at < ? AND due IS NULL
        LIMIT ?\(db.dialect.skippingLocked)
        """, [(try now(db) + -86_400).milliseconds, limit])
      for row in old { try db.run("DELETE FROM attempts WHERE \(identity) = ?", [row["row"]]) }
      return old.count
    }
  }

  /// Returns the attempts at a job that have ended, oldest first.
  package func attempts(of id: JobID) throws(StorageError) -> [(token: AttemptToken, ending: AttemptEnding)] {
    try read { db in
      let rows = try db.rows("SELECT * FROM attempts WHERE job = ? AND ending IS NOT NULL ORDER BY attempt", [id.text])
      return try Self.intact(rows) { row in
        (
          AttemptToken(job: id, attempt: try value(row, "attempt"), nonce: try value(row, "nonce")),
          try choice(row, "ending")
        )
      }
    }
  }
}
