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

  /// Creates a collection of the files in `store`.
  package init(catalog: Catalog, store: MediaStore) { (self.catalog, self.store) = (catalog, store) }

  /// Removes the files that are due, and returns how many. If the disk or the catalog fails, throws and leaves the rest
  /// for the next run. Blocks.
  @discardableResult
  package func run() throws(StorageError) -> Int {
    var count = 0
    for (folder, garbage) in Dictionary(grouping: try catalog.dueGarbage(), by: \.folder) {
      count += try remove(garbage, in: folder)
      try catalog.forget(garbage)
    }
    return count
  }

  private func remove(_ garbage: [Garbage], in folder: RecordingID) throws(StorageError) -> Int {
    let names = try store.fileNames(of: folder).filter { name in garbage.contains { $0.includes(name) } }
    guard !names.isEmpty else { return 0 }
    let kept = try namedFiles(of: folder)
    let removed = names.filter { !kept.contains($0) }
    for name in removed { try store.removeFile(name, of: folder) }
    return removed.count
  }

  /// Returns the files of a recording that its rows or its folder's description name.
  private func namedFiles(of id: RecordingID) throws(StorageError) -> Set<String> {
    let recordings = [try catalog.recording(id), store.description(of: id)?.recording].compactMap { $0 }
    let files = recordings.flatMap { [$0.audioFile, $0.workingFile, $0.waveformFile].compactMap { $0 } }
    return Set(files + (try catalog.conversionFiles(of: id)))
  }
}
