// A catalog that a move is filling is bound to its media by an ID that isn't the media's, `moving <id>`. So no node
// starts with it, not even one of an earlier version, which takes the media for others.

extension Catalog {
  private static let movingPrefix = "moving "

  /// Returns the ID of the media that the catalog is bound to, also if a move is filling it.
  func movingMedia() throws(StorageError) -> (id: String?, isMoving: Bool) {
    let bound = try read { try $0.first("SELECT id FROM media_folder", as: String.self) }
    guard let bound, bound.hasPrefix(Self.movingPrefix) else { return (bound, false) }
    return (String(bound.dropFirst(Self.movingPrefix.count)), true)
  }

  /// Throws `.unfinishedMove` if a move is filling the catalog that is bound to media with this ID.
  static func checkMoved(_ id: String?) throws(StorageError) {
    if let id, id.hasPrefix(movingPrefix) { throw .unfinishedMove(path: nil, from: nil) }
  }

  /// Binds the catalog to the media with an ID, which a move is filling.
  func bind(toMovingMedia id: String) throws(StorageError) { try bind(only: Self.movingPrefix + id) }

  /// Binds the catalog to the media with an ID, which a move has filled.
  func endMove(toMedia id: String) throws(StorageError) { try bind(only: id) }

  private func bind(only id: String) throws(StorageError) {
    try write(.statementLocks) { db in
      try db.run(
        "INSERT INTO media_folder (id) VALUES (?) ON CONFLICT (one) DO UPDATE SET id = excluded.id", [id])
    }
  }

  /// Throws `.otherMedia` unless the catalog is bound to the media with an ID, which a move is filling.
  static func checkMoving(_ id: String, _ db: CatalogTransaction) throws {
    let bound = try db.first("SELECT id FROM media_folder\(db.dialect.changingRows)", as: String.self)
    guard bound == movingPrefix + id else { throw StorageError.notEmpty(path: "the catalog") }
  }

  /// Whether there is any row that a move would write.
  func hasMovedRows() throws(StorageError) -> Bool { try read { try Self.hasMovedRows($0) } }

  /// The same in a transaction.
  static func hasMovedRows(_ db: CatalogTransaction) throws -> Bool {
    let parts = MovedTable.all.map { "EXISTS (SELECT 1 FROM \($0.name))" }
    return try db.first("SELECT \(parts.joined(separator: " OR "))", as: Bool.self) == true
  }

  /// Prolongs all announcements of objects by a day from now, except of those that a collection has taken.
  func renewAnnouncements() throws(StorageError) {
    try write(.statementLocks) { db in
      try db.run("UPDATE garbage SET due = ? WHERE due > 0", [(try now(db) + 86_400).milliseconds])
    }
  }

  /// Deletes the announcements of many objects that the transaction names, and of `others` that may exist; see
  /// `withdraw`.
  func withdrawMoved(_ named: [String], orAlso others: [String], _ db: CatalogTransaction) throws {
    let now = try now(db).milliseconds
    let names = Set(named)
    guard try Self.withdraw(names, now, db) == names.count else {
      throw StorageError.sourceChanged
    }
    _ = try Self.withdraw(Set(others).subtracting(names), now, db)
  }

  /// How many keys one statement has; the rest of a list is filled up with its first.
  private static let keysAtOnce = 100

  private static func withdraw(_ keys: Set<String>, _ now: Int64, _ db: CatalogTransaction) throws -> Int {
    let marks = Array(repeating: "?", count: keysAtOnce).joined(separator: ", ")
    var (left, count) = (Array(keys)[...], 0)
    while let first = left.first {
      let batch = left.prefix(keysAtOnce).map(SQLValue.text)
      let filled = batch + Array(repeating: .text(first), count: keysAtOnce - batch.count)
      count += try db.run(
        "DELETE FROM garbage WHERE due > ? AND object IN (\(marks))", bound: [.integer(now)] + filled)
      left = left.dropFirst(keysAtOnce)
    }
    return count
  }
}

extension CatalogTransaction {
  /// Switches the triggers of a table off or on, for everyone who writes to it in this transaction, which nobody else
  /// can. Does nothing in SQLite.
  func setTriggers(of table: String, on isOn: Bool) throws(StorageError) {
    guard let sql = dialect.settingTriggers(of: table, on: isOn) else { return }
    try run(sql)
  }
}
