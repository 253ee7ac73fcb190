import GRDB

/// What may be removed from a recording's folder, according to the catalog.
enum Garbage: Sendable, Hashable {
  /// All files of an attempt that isn't the result of its job.
  case files(of: AttemptToken, folder: RecordingID)
  /// A file that no row names any more.
  case file(String, folder: RecordingID)

  /// The recording in whose folder the files are.
  var folder: RecordingID {
    switch self {
    case .files(_, let folder), .file(_, let folder): folder
    }
  }

  /// Whether a file with that name in the folder is meant.
  func includes(_ name: String) -> Bool {
    switch self {
    case .files(let token, _): name.contains("-\(token.name).")
    case .file(let file, _): name == file
    }
  }
}

extension Catalog {
  /// Records that a file in a recording's folder may be removed from `due` on.
  static func addGarbage(_ name: String, of id: RecordingID, due: Timestamp, _ db: Database) throws {
    try db.cachedStatement(sql: "INSERT OR REPLACE INTO garbage (object, due) VALUES (?, ?)")
      .execute(arguments: ["recordings/\(id)/\(name)", due.milliseconds])
  }

  /// Returns what may be removed now. Unreadable rows are skipped.
  func dueGarbage() throws(StorageError) -> [Garbage] {
    let now = holder.now().milliseconds
    return try read { db in
      let attempts = try Row.fetchAll(
        db, sql: "SELECT job, attempt, nonce, folder FROM attempts WHERE due <= ?", arguments: [now])
      let objects = try String.fetchAll(db, sql: "SELECT object FROM garbage WHERE due <= ?", arguments: [now])
      return try Self.intact(attempts) { row in
        let token = AttemptToken(
          job: try identifier(row, "job"), attempt: try value(row, "attempt"), nonce: try value(row, "nonce"))
        guard AttemptToken.isNonce(token.nonce) else {
          throw StorageError.corrupt(column: "nonce", value: token.nonce)
        }
        return .files(of: token, folder: try identifier(row, "folder"))
      } + objects.compactMap(Self.garbage)
    }
  }

  private static func garbage(named object: String) -> Garbage? {
    let parts = object.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, parts[0] == "recordings", let folder = RecordingID(parts[1]),
      MediaStore.isFileName(parts[2])
    else { return nil }
    return .file(parts[2], folder: folder)
  }

  /// Deletes the records of what has been removed.
  func forget(_ removed: [Garbage]) throws(StorageError) {
    guard !removed.isEmpty else { return }
    try write { db in
      for garbage in removed {
        switch garbage {
        case .files(let token, _):
          try db.cachedStatement(sql: "UPDATE attempts SET due = NULL WHERE job = ? AND attempt = ? AND nonce = ?")
            .execute(arguments: [token.job.text, token.attempt, token.nonce])
        case .file(let name, let folder):
          try db.cachedStatement(sql: "DELETE FROM garbage WHERE object = ?")
            .execute(arguments: ["recordings/\(folder)/\(name)"])
        }
      }
    }
  }
}

extension Catalog {
  /// Returns the attempts at a job that have ended, oldest first.
  package func attempts(of id: JobID) throws(StorageError) -> [(token: AttemptToken, ending: AttemptEnding)] {
    try read { db in
      let rows = try Row.fetchAll(
        db, sql: "SELECT * FROM attempts WHERE job = ? AND ending IS NOT NULL ORDER BY attempt", arguments: [id.text])
      return try Self.intact(rows) { row in
        (
          AttemptToken(job: id, attempt: try value(row, "attempt"), nonce: try value(row, "nonce")),
          try choice(row, "ending")
        )
      }
    }
  }
}
