// Removes from a folder that several machines share what nodes that are gone have left, but only what a row says may be
// removed: the files of recordings and uploads whose deletion was recorded (`removals`), the parts of uploads that have
// become recordings, and what already is in `removed`. Everything else may be another node's work, or someone's
// recording. Any node may run it at any time, and several at once.

import Glibc

/// Removes what a shared folder has of recordings and uploads that are gone.
package struct SharedUpkeep: Sendable {
  let catalog: Catalog
  let store: MediaStore

  /// Creates a run over the files in `store`.
  package init(catalog: Catalog, store: MediaStore) { (self.catalog, self.store) = (catalog, store) }

  /// Removes the files, and returns how many folders and uploads were affected. If the disk or the catalog fails,
  /// throws and leaves the rest for the next run. Blocks.
  @discardableResult
  package func run() throws(StorageError) -> Int {
    var count = 0
    for id in try catalog.removals().compactMap({ RecordingID($0) }) where try isRemoved(id) {
      try store.remove(id)
      count += 1
    }
    for id in Set(try store.uploadsWithFiles()) {
      switch try catalog.claim(on: id) {
      case .removed, .finished: store.removeParts(of: id)
      case .owned, .unknown: continue
      }
      count += 1
    }
    count += try store.emptyRemoved()
    try Reconciliation(catalog: catalog, store: store).forgetRemovals()
    return count
  }

  private func isRemoved(_ id: RecordingID) throws(StorageError) -> Bool {
    guard try catalog.claim(on: id) == .removed else { return false }
    return FileSystem.identity(of: store.folder(of: id)) != nil
  }
}

extension MediaStore {
  /// Returns the uploads that have files, perhaps several times.
  func uploadsWithFiles() throws(StorageError) -> [UploadID] {
    try FileSystem.names(in: uploads).compactMap { UploadID(String($0.prefix(36))) }
  }

  /// Removes the folders whose removal was begun, and returns their number.
  func emptyRemoved() throws(StorageError) -> Int {
    let begun = try FileSystem.names(in: removed).filter { UUIDv7($0) != nil }
    for name in begun { try FileSystem.remove(removed + "/" + name) }
    return begun.count
  }
}
