import Storage

extension S3Blobs {
  /// Removes a derived object; see `Blobs.delete`.
  package func delete(_ key: ObjectKey) {
    guard !key.mayBeAudio, MediaStore.isFileName(key.name) else { return }
    guard (try? catalog.announce([key])) != nil else { return }
    try? remove(key)
  }

  /// Does nothing: the collection removes them, once no client can be reading them any more.
  package func deleteDiscarded(_ keys: [ObjectKey]) {}

  /// Removes what an attempt may have put; see `Blobs.removeResults`. Ignores failures: the collection repeats it.
  package func removeResults(of token: AttemptToken, in id: RecordingID) {
    let garbage = Garbage.files(of: token, folder: id)
    guard let keys = try? unnamedObjects(of: id, catalog) else { return }
    for key in keys where garbage.includes(key.name) { try? remove(key) }
  }

  /// Removes the objects of a deleted recording that rows of `garbage` name.
  package func remove(_ id: RecordingID) throws(StorageError) {
    for key in try unnamedObjects(of: id, catalog) { try remove(key) }
  }

  /// Returns the announced objects that the recording's rows, if it has any, don't name; the description first: once it
  /// is gone, it can't keep the others.
  private func unnamedObjects(of id: RecordingID, _ catalog: Catalog) throws(StorageError) -> [ObjectKey] {
    let named = try catalog.namedObjects(of: id)
    let keys = try catalog.announcedObjects(of: id).filter { !named.contains($0) }
    return keys.filter { $0.descriptionVersion != nil } + keys.filter { $0.descriptionVersion == nil }
  }

  /// Removes what a job left of a recording that it failed to make, unless the bucket describes it as finished.
  package func discard(_ id: RecordingID) throws(StorageError) {
    if case .absent = try description(of: id) { try remove(id) }
  }

  /// Removes the objects that are due and that no row and no description names. If a recording's description can't be
  /// read, because it is damaged or of a newer version, all that the recording has stays for another day.
  ///
  /// A recording that can't be settled doesn't keep others; then the first error is thrown at the end.
  package func removeGarbage(of catalog: Catalog) throws(StorageError) { try removeGarbage(of: catalog, batch: 1000) }

  /// Removes garbage with `batch` rows at a time.
  func removeGarbage(of catalog: Catalog, batch: Int) throws(StorageError) {
    var failure: StorageError?
    // What can't be removed now comes first the next time, too.
    var (failed, stuck, limit) = (Set<RecordingID>(), 0, batch)
    var isLast = false
    while !isLast, stuck < 10 * batch {
      let due = try catalog.takeGarbage(limit: limit)
      // Unreadable rows stay and come again, so a batch with some of them must be the last.
      isLast = due.count < limit
      for (folder, garbage) in Dictionary(grouping: due, by: \.folder) where !failed.contains(folder) {
        do throws(StorageError) { try collect(garbage, of: folder, catalog) } catch {
          if error.isTransient, client.isFailing { throw error }
          failure = failure ?? error
          failed.insert(folder)
          stuck += garbage.count
        }
      }
      limit = batch + stuck
    }
    while try catalog.forgetAttempts(limit: batch) == batch {}
    do throws(StorageError) { try abortMultiparts(of: catalog) } catch { failure = failure ?? error }
    if let failure { throw failure }
  }

  /// Discards the parts of multipart uploads that were begun a day ago and haven't ended.
  private func abortMultiparts(of catalog: Catalog) throws(StorageError) {
    let batch = 1000
    var failure: StorageError?
    while failure == nil {
      let due = try catalog.takeMultiparts(limit: batch)
      var aborted: [UnfinishedMultipart] = []
      for unfinished in due {
        do throws(StorageError) {
          try StorageError.translating { () throws(S3Error) in
            try client.abort(S3Multipart(key: unfinished.key, id: unfinished.id))
          }
          aborted.append(unfinished)
        } catch {
          failure = failure ?? error
          if error.isTransient { break }
        }
      }
      try catalog.forget(aborted)
      if due.count < batch { break }
    }
    if let failure { throw failure }
  }

  private func collect(_ garbage: [Garbage], of id: RecordingID, _ catalog: Catalog) throws(StorageError) {
    let isDeleted = try catalog.isDeleted(id)
    // Nobody has described the recording as it is, so the one before is still needed.
    if garbage.contains(where: \.isDescription), let recording = try catalog.recording(id),
      try catalog.isDescriptionPromised(of: recording), !catalog.describe(id)
    {
      throw .storeUnreachable(detail: "\(recording.descriptionKey) can't be written")
    }
    let unneeded = try unnamedObjects(of: id, catalog).filter { key in garbage.contains { $0.includes(key.name) } }
    var kept: Set<ObjectKey> = []
    // What a description names stays, but not earlier descriptions.
    if unneeded.contains(where: { $0.descriptionVersion == nil }), !isDeleted {
      switch try description(of: id) {
      case .absent: break
      case .recording(let recording): kept = Set(recording.objects)
      case .unreadable:
        try catalog.postpone(garbage)
        throw .objectStore(
          detail: "the description of recording \(id) can't be read, so nothing of that recording is removed")
      }
    }
    for key in unneeded where !kept.contains(key) { try remove(key) }
    // What a later description than the row's has kept goes with the recording, or once that is changed. What a
    // restored catalog doesn't know stays.
    let spared = garbage.filter { garbage in unneeded.contains { kept.contains($0) && garbage == .object($0) } }
    if !spared.isEmpty, try isKnown(id, to: catalog) { try catalog.postpone(spared) }
    try catalog.forget(garbage)
    guard isDeleted, try catalog.announcedObjects(of: id).isEmpty else { return }
    // A restored catalog doesn't know those that were written later.
    for key in try descriptions(of: id) { try remove(key) }
    try catalog.forgetDeletion(of: id)
  }

  /// Whether a recording has a row, even a damaged one, or had one until it was deleted.
  private func isKnown(_ id: RecordingID, to catalog: Catalog) throws(StorageError) -> Bool {
    if try catalog.missing(among: [id]).isEmpty { return true }
    return try catalog.isDeleted(id)
  }

  /// Removes an object that a row names as unneeded.
  func remove(_ key: ObjectKey) throws(StorageError) {
    try store.delete(key.description)
    cache.remove(key)
  }
}
