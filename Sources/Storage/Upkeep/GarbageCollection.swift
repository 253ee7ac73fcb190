// Removes files that a row of `attempts` or `garbage` names, and no others: those of attempts that ended without a
// result, and those that a transaction has stopped naming. The row was written before the file, or in the transaction
// that made it garbage, so a crash leaves nothing behind that isn't found again.
//
// A catalog restored from a backup may take a finished attempt for a lost one. So a file stays if a row or the folder's
// description names it.

/// Removes the files that the catalog has recorded as no longer needed.
package struct GarbageCollection: Sendable {
  let catalog: Catalog
  let store: MediaStore
  /// The number of rows read at once.
  private static let batch = 1000

  /// Creates a collection of the files in `store`.
  package init(catalog: Catalog, store: MediaStore) { (self.catalog, self.store) = (catalog, store) }

  /// Removes the files that are due, and returns how many. If the disk or the catalog fails, throws and leaves the rest
  /// for the next run. Several processes may do this at once: a file that another one has removed is gone, and nothing
  /// else is named by its row. Blocks.
  @discardableResult
  package func run() throws(StorageError) -> Int {
    var count = 0
    while true {
      let due = try catalog.dueGarbage(limit: Self.batch)
      var kept = 0
      for (folder, garbage) in Dictionary(grouping: due, by: \.folder) {
        do throws(StorageError) {
          if let removed = try remove(garbage, in: folder) {
            count += removed
            try catalog.forget(garbage)
          } else {
            kept += garbage.count
          }
        } catch .corrupt {
          // Nobody can tell which files a damaged row names, so all of them stay.
          kept += garbage.count
        }
      }
      // What stays, with unreadable rows of garbage, comes again, so a batch with some of it must be the last.
      if due.count < Self.batch || kept > 0 { break }
    }
    while try catalog.forgetAttempts(limit: Self.batch) == Self.batch {}
    return count
  }

  /// Returns the number of removed files; nil if the recording can't be described, so that an older description stays.
  private func remove(_ garbage: [Garbage], in folder: RecordingID) throws(StorageError) -> Int? {
    if garbage.contains(where: \.isDescription), try catalog.recording(folder) != nil, !catalog.describe(folder) {
      return nil
    }
    let names = try store.fileNames(of: folder).filter { name in garbage.contains { $0.includes(name) } }
    guard !names.isEmpty else { return 0 }
    let kept = try namedFiles(of: folder)
    let removed = names.filter { !kept.contains($0) }
    for name in removed { try store.removeFile(name, of: folder) }
    return removed.count
  }

  /// Returns the files of a recording that its rows or its folder's description name.
  private func namedFiles(of id: RecordingID) throws(StorageError) -> Set<String> {
    let recordings = [try catalog.recording(id), try store.readDescription(of: id)?.recording].compactMap { $0 }
    let files = recordings.flatMap {
      [$0.audioFile, $0.workingFile, $0.waveformFile, $0.descriptionKey.name].compactMap { $0 }
    }
    return Set(files + (try catalog.conversionFiles(of: id)))
  }
}
