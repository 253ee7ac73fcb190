import Glibc
import Synchronization

/// What earlier runs have left in the target of a move.
package enum MoveState: Sendable {
  /// It was empty.
  case new
  /// Some files may be there.
  case begun
  /// All files and rows were written, but not compared.
  case written
  /// Everything is there, and services may have used it since.
  case ended
}

/// Where a move writes. No service starts there until the move ends.
package protocol MoveTarget: Sendable {
  /// What messages call it.
  var name: String { get }
  /// The files.
  var media: any ObjectStore { get }
  /// Where objects are announced before they are put; nil if they are files.
  var announcements: Catalog? { get }
  /// What earlier runs have left.
  var state: MoveState { get }

  /// Removes rows that an earlier run of the move has written.
  func clear() throws(StorageError)
  /// Calls `copy` in a transaction, which may be repeated, and commits it. Throws `.notEmpty` if there are rows.
  func write(_ copy: @Sendable (any SQLSession, Move.Confirmation) throws -> Void) throws(StorageError)
  /// Returns the catalog that was written.
  func catalogForReading() throws(StorageError) -> Catalog
  /// Lets services use the target. Returns how many recordings' folders were set aside, because an earlier run had
  /// copied them and the catalog doesn't have them any more.
  func end() throws(StorageError) -> Int
}

// MARK: - Several machines

/// The catalog and the media of several machines as the target of a move.
package struct SharedMoveTarget: MoveTarget {
  /// What messages call it.
  package let name: String
  /// The folder or the bucket.
  package let media: any ObjectStore
  /// What earlier runs have left.
  package let state: MoveState
  private let catalog: Catalog
  private let run: MovingBinding

  /// Prepares a catalog whose tables are those of this version, and its media. Binds them to each other, so that no
  /// node starts before the move has ended, and no other run of a move goes on.
  ///
  /// Throws `.notEmpty` if the media have recordings but not of this move, `.otherMedia` if the catalog belongs to
  /// other media, and `.otherMove` if another run begins at the same time.
  package init(_ catalog: Catalog, _ media: any ObjectStore, name: String) throws(StorageError) {
    let bound = try catalog.movingBinding()
    let found = try media.mediaID()
    if let id = bound.mediaID, let found, id != found { throw .otherMedia(path: media.name) }
    let id: String
    if try catalog.hasMovedRows() {
      guard let found, bound.mediaID == found else { throw .notEmpty(path: name) }
      id = found
      state = bound.isMoving ? .written : .ended
    } else {
      if !bound.isMoving, try media.hasRecordings() { throw .notEmpty(path: media.name) }
      // The media of an earlier run have their ID since before the catalog was bound to them.
      if bound.isMoving, found == nil { throw .otherMedia(path: media.name) }
      id = try media.makeMediaID(bound.mediaID)
      guard bound.mediaID ?? id == id else { throw .otherMedia(path: media.name) }
      state = bound.isMoving ? .begun : .new
    }
    run = MovingBinding(media: id, run: UUIDv7())
    if state != .ended { try catalog.bind(run, insteadOf: bound) }
    (self.catalog, self.media, self.name) = (catalog, media, name)
  }

  /// The catalog, if the media are in a bucket.
  package var announcements: Catalog? { media.isBucket ? catalog : nil }

  /// The catalog.
  package func catalogForReading() -> Catalog { catalog }

  /// Deletes all rows that a move writes. No node has been able to start since. The bytes of uploads become garbage,
  /// because the next run gives them other names.
  package func clear() throws(StorageError) {
    try catalog.engine.write(.statementLocks) { [run, catalog, media] session in
      let db = CatalogTransaction(session)
      try Self.withoutCounting(db) {
        try Catalog.check(run, db)
        if media.isBucket {
          // “WHERE true” keeps SQLite from taking ON for a part of a join.
          try db.run(
            """
            INSERT INTO garbage (object, due)
            SELECT 'uploads/' || upload || '/' || name, ? FROM upload_objects WHERE true
            ON CONFLICT (object) DO NOTHING
            """, [(try catalog.now(db) + 86_400).milliseconds])
        }
        try db.run("DELETE FROM upload_objects")
        for table in MovedTable.all.reversed() { try db.run("DELETE FROM \(table.name)") }
      }
    }
  }

  /// Runs a part of a transaction without the triggers that count rows in `usage`, while nobody else can write to the
  /// counted tables.
  private static func withoutCounting(_ db: CatalogTransaction, _ body: () throws -> Void) throws {
    let counted = MovedTable.all.filter(\.isCounted).map(\.name)
    for table in counted { try db.setTriggers(of: table, on: false) }
    try body()
    for table in counted { try db.setTriggers(of: table, on: true) }
  }

  /// Writes all rows, with the triggers that count them switched off: a million updates of one row within a
  /// transaction would take hours.
  package func write(
    _ copy: @Sendable (any SQLSession, Move.Confirmation) throws -> Void
  ) throws(StorageError) {
    try catalog.engine.write(.statementLocks) { session in
      let db = CatalogTransaction(session)
      try Self.withoutCounting(db) {
        try Catalog.check(run, db)
        guard try !Catalog.hasMovedRows(db) else { throw StorageError.notEmpty(path: name) }
        try copy(db) { try confirm($0, $1, db) }
      }
    }
  }

  private func confirm(_ named: [String], _ others: [String], _ db: CatalogTransaction) throws {
    if media.isBucket { return try catalog.withdrawMoved(named, orAlso: others, db) }
    for key in named where try media.look(key) == nil { throw StorageError.sourceChanged }
  }

  /// Binds the catalog to its media for good. Sets nothing aside: what no row names stays, as always.
  package func end() throws(StorageError) -> Int {
    if state != .ended { try catalog.end(run) }
    return 0
  }
}

// MARK: - One machine

/// A data folder as the target of a move.
package final class FolderMoveTarget: MoveTarget {
  /// The path.
  package let name: String
  /// The files.
  package let media: any ObjectStore
  /// What earlier runs have left.
  package let state: MoveState
  private let store: MediaStore
  private let catalog = Mutex<Catalog?>(nil)

  /// Prepares a folder, which must not exist, be empty, or have the unfinished move from the same source. Claims it.
  /// `source` is what the folder says about the source, and `id` that of its media.
  ///
  /// Throws `.notEmpty`, `.unfinishedMove` with another source, and `.inUse`.
  package init(_ path: String, from source: String, mediaID id: String) throws(StorageError) {
    let looking = MediaStore(lookingAt: path)
    let mark = UnfinishedMove(source: source, mediaID: id)
    let found = try looking.unfinishedMove()
    if let found {
      guard found == mark else { throw .unfinishedMove(path: path, from: found.source) }
    } else {
      try Self.checkEmpty(path)
      try FileSystem.makeFolders(path)
      try looking.write(mark)
    }
    store = try MediaStore(directory: path)
    try store.claim()
    var report = SweepReport()
    store.removeIncoming(&report)
    (name, media, state) = (path, FolderStore(store), found == nil ? .new : .begun)
  }

  private static func checkEmpty(_ path: String) throws(StorageError) {
    let names: [String]
    do { names = try FileSystem.names(in: path) } catch .io(_, _, let number) where number == ENOENT { return }
    guard names.allSatisfy({ $0 == "lost+found" }) else { throw .notEmpty(path: path) }
  }

  /// nil: files have their names once they are complete.
  package var announcements: Catalog? { nil }

  private var newPath: String { store.directory + "/moving.sqlite" }

  /// Does nothing: the catalog is written anew.
  package func clear() {}

  /// Writes all rows into a new file.
  package func write(
    _ copy: @Sendable (any SQLSession, Move.Confirmation) throws -> Void
  ) throws(StorageError) {
    for suffix in ["", "-wal", "-shm"] { _ = try FileSystem.removeFile(newPath + suffix) }
    let new = try Catalog(path: newPath)
    try new.engine.write { [media] session in
      try copy(session) { named, _ in
        for key in named where try media.look(key) == nil { throw StorageError.sourceChanged }
      }
    }
    catalog.withLock { $0 = new }
  }

  /// Returns the catalog that was written. It must have been.
  package func catalogForReading() -> Catalog {
    guard let catalog = catalog.withLock({ $0 }) else { preconditionFailure("the rows are written first") }
    return catalog
  }

  /// Puts the catalog in place and removes the mark.
  package func end() throws(StorageError) -> Int {
    let new = catalog.withLock { catalog in
      defer { catalog = nil }
      return catalog
    }
    var forgotten = 0
    if let new {
      forgotten = try setAsideForgotten(new)
      try new.close()
    }
    for suffix in ["-wal", "-shm"] { _ = try FileSystem.removeFile(newPath + suffix) }
    try FileDescriptor(path: newPath, flags: O_RDWR).sync()
    try FileSystem.rename(newPath, to: store.catalogPath)
    try FileSystem.syncFolder(store.directory)
    try store.removeUnfinishedMove()
    return forgotten
  }

  /// Sets aside the folders of recordings that an earlier run has copied and that were deleted since: with their
  /// descriptions, a start would give them their rows back.
  private func setAsideForgotten(_ catalog: Catalog) throws(StorageError) -> Int {
    guard state != .new else { return 0 }
    var count = 0
    for id in try store.recordingFolders() where try catalog.claim(on: id) != .owned {
      try store.setAside(id)
      count += 1
    }
    return count
  }
}

/// What a data folder says that a move is filling: in the file `unfinished-move`, the source and the ID of its media,
/// each in a line.
struct UnfinishedMove: Equatable {
  static let fileName = "unfinished-move"
  static let byteLimit: Int64 = 64 << 10

  let source: String
  let mediaID: String

  init(source: String, mediaID: String) { (self.source, self.mediaID) = (source, mediaID) }

  init(_ content: [UInt8]) {
    let lines = String(decoding: content, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    self.init(source: String(lines.first ?? ""), mediaID: lines.count > 1 ? String(lines[1]) : "")
  }

  var content: [UInt8] { Array("\(source)\n\(mediaID)\n".utf8) }
}

extension MediaStore {
  private var movePath: String { directory + "/" + UnfinishedMove.fileName }

  /// Returns the move that hasn't filled the folder yet; nil if there is none.
  func unfinishedMove() throws(StorageError) -> UnfinishedMove? {
    do { return UnfinishedMove(try FileSystem.contents(of: movePath, limit: UnfinishedMove.byteLimit)) } catch {
      guard case .io(_, _, let number) = error, number == ENOENT || number == ENOTDIR else { throw error }
      return nil
    }
  }

  fileprivate func write(_ move: UnfinishedMove) throws(StorageError) {
    try FileSystem.replace(movePath, with: move.content)
    try FileSystem.syncFolder(directory)
  }

  fileprivate func removeUnfinishedMove() throws(StorageError) {
    try FileSystem.remove(movePath)
    try FileSystem.syncFolder(directory)
  }
}
