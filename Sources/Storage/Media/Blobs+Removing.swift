// Removes files that a row of `attempts` or `garbage` names, and no others: those of attempts that ended without a
// result, and those that a transaction has stopped naming. The row was written before the file, or in the transaction
// that made it garbage, so a crash leaves nothing behind that isn't found again.
//
// A catalog that was restored to an earlier state may take a finished attempt for a lost one, and may not name newer
// objects. So a file stays if a row or the latest description of the recording names it.

extension Blobs {
  /// Removes an object that was derived from a recording and that no row names any more; after a failure, the
  /// collection of a bucket's or the removal of the recording repeats it. Never removes the recording's own audio, even
  /// if a damaged row names it.
  package func delete(_ key: ObjectKey) {
    guard !key.mayBeAudio, MediaStore.isFileName(key.name), (try? announce([key])) != nil else { return }
    try? store.delete("\(key)")
  }

  /// Removes conversions that a transaction has discarded from a folder, so that they take no room until the next
  /// collection; readers of an open file can read it to its end. Objects in a bucket stay until the collection, because
  /// a client that was redirected to one may still be reading it.
  package func deleteDiscarded(_ keys: [ObjectKey]) {
    guard folder != nil else { return }
    for key in keys { delete(key) }
  }

  /// Removes what an attempt may have put. No row may name it, and the attempt must have ended. If this fails, the next
  /// collection removes it.
  package func removeResults(of token: AttemptToken, in id: RecordingID) {
    let garbage = Garbage.files(of: token, folder: id)
    guard let keys = try? unnamedObjects(of: id, catalog) else { return }
    for key in keys where garbage.includes(key.name) { try? store.delete("\(key)") }
  }

  /// Removes all objects of a recording whose row was deleted. Missing ones aren't an error. From a bucket, those that
  /// rows of `garbage` have: the transaction that deleted the row has written them there.
  package func remove(_ id: RecordingID) throws(StorageError) {
    if let folder { return try folder.remove(id) }
    for key in try unnamedObjects(of: id, catalog) { try store.delete("\(key)") }
  }

  /// Removes what a job left of a recording that it failed to make. Keeps it if it is described as finished, because
  /// the row may come from an older catalog; a folder is then set aside.
  package func discard(_ id: RecordingID) throws(StorageError) {
    if try !descriptions.hasAny(of: id) { try remove(id) } else { try folder?.setAside(id) }
  }

  /// Returns the objects that the recording's rows, if it has any, don't name: those in its folder, or the announced
  /// ones of a bucket. A description comes first: once it is gone, it can't keep the others.
  private func unnamedObjects(of id: RecordingID, _ catalog: Catalog) throws(StorageError) -> [ObjectKey] {
    let named = try catalog.namedObjects(of: id)
    let all =
      if folder == nil { try catalog.announcedObjects(of: id) } else {
        try store.keys("recordings/\(id)/", limit: .max).compactMap { ObjectKey($0) }
      }
    let keys = all.filter { !named.contains($0) }
    return keys.filter { $0.descriptionVersion != nil } + keys.filter { $0.descriptionVersion == nil }
  }

  // MARK: Collecting

  /// Removes the objects that rows of `attempts` and `garbage` name and that are due, and returns how many. Several
  /// processes may do this at once. If that fails, throws and leaves the rest for the next time.
  ///
  /// A recording that can't be settled doesn't keep others; then the first error is thrown at the end. If a
  /// recording's description can't be read, because it is damaged or of a newer version, all that the recording has
  /// stays for another day, and if its row in a folder can't, until it can.
  @discardableResult
  package func removeGarbage(of catalog: Catalog) throws(StorageError) -> Int {
    folder?.keepReserve()
    return try removeGarbage(of: catalog, batch: 1000)
  }

  /// Removes garbage with `batch` rows at a time.
  @discardableResult
  package func removeGarbage(of catalog: Catalog, batch: Int) throws(StorageError) -> Int {
    var failure: StorageError?
    // What can't be removed now comes first the next time, too.
    var (failed, stuck, limit, count) = (Set<RecordingID>(), 0, batch, 0)
    var isLast = false
    while !isLast, stuck < 10 * batch {
      let due = try folder == nil ? catalog.takeGarbage(limit: limit) : catalog.dueGarbage(limit: limit)
      // Unreadable rows stay and come again, so a batch with some of them must be the last.
      isLast = due.count < limit
      for (id, garbage) in Dictionary(grouping: due, by: \.folder) where !failed.contains(id) {
        do throws(StorageError) { count += try collect(garbage, of: id, catalog) } catch {
          if error.isTransient, store.isFailing { throw error }
          // Nobody can tell which files a damaged row names.
          if case .corrupt = error, folder != nil {} else { failure = failure ?? error }
          failed.insert(id)
          stuck += garbage.count
        }
      }
      limit = batch + stuck
    }
    while try catalog.forgetAttempts(limit: batch) == batch {}
    do throws(StorageError) { try store.discardUnfinished() } catch { failure = failure ?? error }
    if let failure { throw failure }
    return count
  }

  private func collect(
    _ garbage: [Garbage], of id: RecordingID, _ catalog: Catalog
  ) throws(StorageError) -> Int {
    let isDeleted = try catalog.isDeleted(id)
    let isDescribed = garbage.contains(where: \.isDescription)
    // Nobody has described the recording as it is, so the one before is still needed.
    if isDescribed || folder != nil, let recording = try catalog.recording(id), isDescribed,
      try catalog.isDescriptionPromised(of: recording), !catalog.describe(id)
    {
      throw .storeUnreachable(detail: "\(recording.descriptionKey) can't be written")
    }
    let unneeded = try unnamedObjects(of: id, catalog).filter { key in garbage.contains { $0.includes(key.name) } }
    var kept: Set<ObjectKey> = []
    // What a description names stays, but not earlier descriptions.
    if unneeded.contains(where: { $0.descriptionVersion == nil }), !isDeleted {
      let (described, isLatest) = try descriptions.find(id)
      guard isLatest else {
        try catalog.postpone(garbage)
        throw .objectStore(
          detail: "the description of recording \(id) can't be read, so nothing of that recording is removed")
      }
      if let described { kept = Set(described.objects) }
    }
    let removed = unneeded.filter { !kept.contains($0) }
    for key in removed { try store.delete("\(key)") }
    // What a later description than the row's has kept goes with the recording, or once that is changed. What a
    // restored catalog doesn't know stays.
    let spared = garbage.filter { garbage in unneeded.contains { kept.contains($0) && garbage == .object($0) } }
    if folder == nil, !spared.isEmpty, try isKnown(id, to: catalog) { try catalog.postpone(spared) }
    try catalog.forget(garbage)
    guard folder == nil, isDeleted, try catalog.announcedObjects(of: id).isEmpty else { return removed.count }
    // A restored catalog doesn't know those that were written later.
    for key in try descriptions.keys(of: id) { try store.delete("\(key)") }
    try catalog.forgetDeletion(of: id)
    return removed.count
  }

  /// Whether a recording has a row, even a damaged one, or had one until it was deleted.
  private func isKnown(_ id: RecordingID, to catalog: Catalog) throws(StorageError) -> Bool {
    if try catalog.missing(among: [id]).isEmpty { return true }
    return try catalog.isDeleted(id)
  }
}

extension StorageError {
  /// Whether a store that fails like this may work in a moment.
  package var isTransient: Bool { if case .storeUnreachable = self { true } else { false } }
}
