// A description is the only object that is replaced. Where several nodes share the media, the transaction that changes
// its recording writes a row of `garbage` for it, too: a promise, which is deleted once the object says what the row
// says. If that isn't done in a minute, because the store was full or the node is gone, the next collection of any node
// does it. In a bucket, the row names the object. In a folder, it is named describe/<id>, because a collection
// removes the files there that a row of `garbage` names.
//
//   1. the change and its promise  2. the row and the promise are read, in one statement  3. the object is put
//   4. the promise is deleted and the row read again, in one transaction; if it has changed, again from 3 on
//
// So the last one who puts a description has read the newest row. The commit of 4 isn't waited for: if it is lost, the
// description is put once more.
//
// A node that is stopped between 2 and 3 may put what others have replaced meanwhile, and be killed before 4. So if
// that has taken seconds, it first has the description put again in a day (Catalog+DoubtfulDescriptions). If a node
// is killed during 3, nobody does that, and the store may carry its put out later. So a change that finds a promise and
// replaces it has the description put again in a day, too.
//
// What a client waits for ends with 1, and the rest follows on threads of its own (`describeLater`): a store that says
// nothing would hold up all calls of the catalog. Only the first description of a sound is put before its recording is
// acknowledged, because it alone says so if the catalog is restored to an earlier moment.

extension Catalog {
  /// How long the node that changed a recording has to describe it, in seconds.
  private static let describingSeconds = 60.0

  /// What a description must say.
  struct Undescribed: Sendable {
    let recording: Recording
    /// When the promise of the description that covers this row is due; nil if there is none.
    let promise: Int64?
  }

  /// Writes the current description of a recording into its folder. Returns false if it couldn't.
  @discardableResult
  package func describe(_ id: RecordingID) -> Bool {
    guard let keeper = descriptions.withLock({ $0 }) else { return true }
    let isInBucket = namesDeletedObjects.load(ordering: .relaxed)
    return keeper.describe(
      id, doubt: { if promisesDescriptions { try doubtDescription(of: id) } }
    ) { described in
      guard let described else {
        let row = try undescribed(id)
        // Without a promise, another node has written what the row says. A folder may have a mark to be removed.
        return isInBucket && row?.promise == nil ? nil : row
      }
      let row = try promisesDescriptions ? settle(described) : nil
      return row?.recording == described.recording ? nil : row
    }
  }

  /// Whether rows promise descriptions: other nodes may have to write what this one couldn't.
  private var promisesDescriptions: Bool {
    namesDeletedObjects.load(ordering: .relaxed) || descriptions.withLock { $0 }?.store.hasOtherWriters == true
  }

  /// The name of the row that promises a recording's description.
  private func promiseName(of id: RecordingID) -> String {
    namesDeletedObjects.load(ordering: .relaxed)
      ? ObjectKey.description(of: id).description : Self.descriptionPrefix + id.text
  }

  /// Describes a recording soon, on a thread that may wait for the store. If too much waits already, or this process
  /// ends before, the collection of any node does it.
  func describeLater(_ id: RecordingID) {
    guard let keeper = descriptions.withLock({ $0 }), keeper.canWait, namesDeletedObjects.load(ordering: .relaxed)
    else {
      describe(id)
      return
    }
    keeper.later(id) { [self] in describe(id) }
  }

  /// Returns a recording and the promise of its description, both of one moment; nil if it is deleted.
  func undescribed(_ id: RecordingID) throws(StorageError) -> Undescribed? {
    try engine.readLatest { try self.undescribed(id, CatalogTransaction($0)) }
  }

  private func undescribed(_ id: RecordingID, _ db: CatalogTransaction) throws -> Undescribed? {
    guard promisesDescriptions else {
      return try Self.recording(id, db).map { Undescribed(recording: $0, promise: nil) }
    }
    let row = try db.row(
      "SELECT recordings.*, (SELECT due FROM garbage WHERE object = ?) AS promise FROM recordings WHERE id = ?",
      [promiseName(of: id), id.text])
    return try row.map {
      Undescribed(recording: try RecordingRow(row: $0).recording, promise: try nullable($0, "promise"))
    }
  }

  /// Takes in that a description was written, and returns what it must say now. Deletes the promise that covered it,
  /// not a later one, nor that of a deleted recording, whose row is about the deletion.
  func settle(_ described: Undescribed) throws(StorageError) -> Undescribed? {
    let id = described.recording.id
    // Bypasses `write`, because it changes nothing that readers see.
    return try engine.write(.unflushed) { session in
      let db = CatalogTransaction(session)
      if let promise = described.promise {
        try db.run(
          """
          DELETE FROM garbage WHERE object = ? AND due <= ? AND EXISTS (SELECT 1 FROM recordings WHERE id = ?)
          """, [promiseName(of: id), promise, id.text])
      }
      return try undescribed(id, db)
    }
  }

  /// Promises that the descriptions of recordings will be written; see above.
  func promiseDescriptions(of recordings: Set<RecordingID>, _ db: CatalogTransaction) throws {
    guard !recordings.isEmpty, promisesDescriptions else { return }
    let now = try now(db)
    if namesDeletedObjects.load(ordering: .relaxed) {
      for id in recordings.sorted(by: { $0.text < $1.text }) { try doubtPromisedDescription(of: id, at: now, db) }
    }
    let due = now + Self.describingSeconds
    for key in recordings.map({ promiseName(of: $0) }).sorted() {
      // Each promise is later than the one before, so that settling that doesn't settle this.
      try db.run(
        """
        INSERT INTO garbage (object, due) VALUES (?, ?) ON CONFLICT (object) DO UPDATE
          SET due = CASE WHEN garbage.due < excluded.due THEN excluded.due ELSE garbage.due + 1 END
        """, [key, due.milliseconds])
    }
  }

  /// If a description is promised already, another put of it may be on its way: has it put again in a day.
  private func doubtPromisedDescription(of id: RecordingID, at now: Timestamp, _ db: CatalogTransaction) throws {
    try db.run(
      """
      INSERT INTO garbage (object, due) SELECT ?, ? WHERE EXISTS (SELECT 1 FROM garbage WHERE object = ?)
      ON CONFLICT (object) DO UPDATE SET due = excluded.due
      """,
      bound: [
        .text(Self.descriptionPrefix + id.text), .integer((now + Self.doubtSeconds).milliseconds),
        .text(promiseName(of: id)),
      ])
  }

  /// Whether a recording's description is still to be written by a node.
  func isDescriptionPromised(of id: RecordingID) throws(StorageError) -> Bool {
    let key = ObjectKey.description(of: id).description
    return try read { db in
      try db.first("SELECT EXISTS (SELECT 1 FROM garbage WHERE object = ?)", [key], as: Bool.self) == true
    }
  }
}
