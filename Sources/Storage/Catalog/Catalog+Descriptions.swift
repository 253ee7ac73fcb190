// A recording's description is an object that is written once, like all others: recording-<version>.json. The
// transaction that changes what it says gives the row another version, and has the one before removed: a day later in a
// bucket, by a row of `garbage`; in a folder, once the new one is durable.
//
//   1. the row with the new version; rows of `garbage` for the description before and for the new one
//   2. the new description   3. its row of `garbage` is deleted. The commit isn't waited for
//
// If a node is killed or the store fails between 1 and 3, the next collection of any node writes what the row says. It
// does so before it removes an older description, so the newest that is there is never given up. Whoever writes a
// version, and however late, writes the same. Where only one process uses the media, it needs no rows: its start
// describes what isn't described.
//
// What a client waits for ends with 1, and the rest follows on threads of its own (`describeLater`): a store that says
// nothing would hold up all calls of the catalog. Only the first description of a sound is put before its recording is
// acknowledged, because it alone says so if the catalog is restored to an earlier moment.

extension Catalog {
  /// How long the node that changed a recording has to describe it, in seconds.
  private static let describingSeconds = 60.0

  /// Writes the current description of a recording beside its audio. Returns false if it couldn't.
  ///
  /// If the folder has a later version, which the catalog has forgotten, the row gets an even later one.
  @discardableResult
  package func describe(_ id: RecordingID) -> Bool {
    guard let keeper = descriptions.withLock({ $0 }) else { return true }
    do throws(StorageError) {
      guard let recording = try recording(id) else { return true }
      let newest = try keeper.store.newest(of: id)
      guard newest > recording.version else { return describe(recording) }
      try update(id) { $0.version = max($0.version, newest) }
      return true
    } catch {
      keeper.fail(id, error)
      return false
    }
  }

  /// Writes the description of a recording as its row was committed.
  @discardableResult
  func describe(_ recording: Recording) -> Bool {
    guard let keeper = descriptions.withLock({ $0 }) else { return true }
    return keeper.describe(recording) { () throws(StorageError) in
      if promisesDescriptions { try noteDescribed(recording) }
    }
  }

  /// Describes a recording soon, on a thread that may wait for the store. If too much waits already, or this process
  /// ends before, the collection of any node does it.
  func describeLater(_ recording: Recording) {
    guard let keeper = descriptions.withLock({ $0 }), keeper.canWait, promisesDescriptions else {
      describe(recording)
      return
    }
    keeper.later(recording) { [self] in describe($0) }
  }

  /// Whether other processes write to the media, so that rows say which descriptions are to be written.
  private var promisesDescriptions: Bool {
    namesDeletedObjects.load(ordering: .relaxed) || descriptions.withLock { $0 }?.store.hasOtherWriters == true
  }

  /// Records the descriptions that a transaction has outdated, and those that are still to be written.
  func recordDescriptions(_ db: CatalogTransaction) throws {
    let (outdated, new) = (db.outdatedDescriptions, db.recordingsToDescribe.map(\.descriptionKey))
    guard !outdated.isEmpty || !new.isEmpty, promisesDescriptions else { return }
    let now = try now(db)
    try Self.addGarbage(outdated.map(\.description), due: now + Self.settlingSeconds, db)
    try Self.addGarbage(new.map(\.description), due: now + Self.describingSeconds, db)
  }

  /// Deletes the row of `garbage` of a description that was written, unless the row names another by now.
  func noteDescribed(_ recording: Recording) throws(StorageError) {
    // Bypasses `write`, because it changes nothing that readers see.
    _ = try engine.write(.unflushed) { session in
      let db = CatalogTransaction(session)
      // A transaction that outdates or deletes it meanwhile has its removal due much later.
      try db.run(
        """
        DELETE FROM garbage WHERE object = ? AND due <= ?
          AND EXISTS (SELECT 1 FROM recordings WHERE id = ? AND version = ?)
        """,
        [
          recording.descriptionKey.description, (try now(db) + Self.describingSeconds).milliseconds, recording.id.text,
          recording.version,
        ])
    }
  }

  /// Whether a recording's description is still to be written by a node.
  package func isDescriptionPromised(of recording: Recording) throws(StorageError) -> Bool {
    let key = recording.descriptionKey.description
    return try read { db in
      try db.first("SELECT EXISTS (SELECT 1 FROM garbage WHERE object = ?)", [key], as: Bool.self) == true
    }
  }
}
