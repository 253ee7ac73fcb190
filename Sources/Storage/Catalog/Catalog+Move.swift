// A catalog that a move is filling is bound to its media by a text that isn't the media's ID, `moving <id> <run>`. So
// no node starts with it.
//
// `run` names the process that fills it. One that begins puts its own name there, and each transaction of a move fails
// if the name is another's: of two moves into one place, only the one that began last goes on, and a process that was
// stopped for a while can't end a move whose rows another one has removed.

/// What a catalog that a move may be filling is bound to.
struct MovingBinding: Sendable, Equatable {
  private static let prefix = "moving "
  /// The text in the row; nil if the catalog isn't bound.
  fileprivate let text: String?

  fileprivate init(_ text: String?) { self.text = text }

  /// A run of a move into the media with an ID.
  init(media id: String, run: UUIDv7) { text = "\(Self.prefix)\(id) \(run.text)" }

  /// Whether a move is filling the catalog.
  var isMoving: Bool { text?.hasPrefix(Self.prefix) == true }

  /// The ID of the media, also while a move is filling the catalog.
  var mediaID: String? {
    guard let text, isMoving else { return text }
    return String(text.dropFirst(Self.prefix.count).prefix { $0 != " " })
  }
}

extension Catalog {
  /// Returns what the catalog is bound to.
  func movingBinding() throws(StorageError) -> MovingBinding {
    try read { MovingBinding(try $0.first("SELECT id FROM media_folder", as: String.self)) }
  }

  /// Throws `.unfinishedMove` if a move is filling the catalog that is bound to media with this ID.
  static func checkMoved(_ id: String?) throws(StorageError) {
    if MovingBinding(id).isMoving { throw .unfinishedMove(path: nil, from: nil) }
  }

  /// Begins a run of a move. Throws `.otherMove` if the catalog isn't bound as `before` any more.
  func bind(_ run: MovingBinding, insteadOf before: MovingBinding) throws(StorageError) {
    try rebind(before.text, to: run.text)
  }

  /// Binds the catalog to the media that a run of a move has filled. Throws `.otherMove` if another one has begun.
  func end(_ run: MovingBinding) throws(StorageError) { try rebind(run.text, to: run.mediaID) }

  private func rebind(_ before: String?, to after: String?) throws(StorageError) {
    try write(.statementLocks) { db in
      let count =
        if before == nil {
          try db.run("INSERT INTO media_folder (id) VALUES (?) ON CONFLICT (one) DO NOTHING", [after])
        } else {
          try db.run("UPDATE media_folder SET id = ? WHERE id = ?", [after, before])
        }
      guard count == 1 else { throw StorageError.otherMove }
    }
  }

  /// Throws `.otherMove` if another run of a move has begun. Until the transaction ends, none can.
  static func check(_ run: MovingBinding, _ db: CatalogTransaction) throws {
    let bound = try db.first("SELECT id FROM media_folder\(db.dialect.changingRows)", as: String.self)
    guard bound == run.text else { throw StorageError.otherMove }
  }

  /// Whether there is any row that a move would write.
  func hasMovedRows() throws(StorageError) -> Bool { try read { try Self.hasMovedRows($0) } }

  /// Whether there is any row that a move would write, in this transaction.
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
