// Removes from a folder that several machines share what nodes that are gone have left. Of what may be someone's
// recording, it removes only what a row says may be removed: the files of recordings and uploads whose deletion was
// recorded (`removals`), the parts of uploads that have become recordings, and what already is in `removed`. Everything
// else may be another node's work. Any node may run it at any time, and several at once.
//
// A killed node may leave a mark in the folder of a recording that has its row, which then gets its description, and
// work that no row names and nobody continues. Such work is cleared away once it is a day old, by the time in its ID
// and the catalog's clock, because no request or preview takes that long:
//
//   a work folder without an unfinished job     removed: nothing in it is anyone's recording
//   a folder marked as unfinished, with files   moved to orphaned/: its upload was never acknowledged, or the catalog
//                                               has been restored to an earlier state
//   one without files                           removed
//   the file of an upload, if it is empty       removed; one with bytes stays

import Glibc

/// Removes what a shared folder has of recordings and uploads that are gone.
package struct SharedUpkeep: Sendable {
  let catalog: Catalog
  let store: MediaStore
  let now: Timestamp

  /// Creates a run over the files in `store`, at the present time by default.
  package init(catalog: Catalog, store: MediaStore, now: Timestamp? = nil) {
    (self.catalog, self.store, self.now) = (catalog, store, now ?? catalog.time)
  }

  /// Removes the files, and returns how many folders and uploads were affected. If the disk or the catalog fails,
  /// throws and leaves the rest for the next run. Looks for unfinished recordings among those created since `start`:
  /// there may be a million folders, and each costs a system call. Blocks.
  @discardableResult
  package func run(createdSince start: Timestamp = Timestamp(milliseconds: 0)) throws(StorageError) -> Int {
    var count = 0
    for id in try catalog.removals().compactMap({ RecordingID($0) }) where try isRemoved(id) {
      try store.remove(id)
      count += 1
    }
    for id in Set(try store.uploadsWithFiles()) {
      switch try catalog.claim(on: id) {
      case .removed, .finished: store.removeParts(of: id)
      case .unknown where isOld(id): guard try store.removeEmptyPart(of: id) else { continue }
      case .owned, .unknown: continue
      }
      count += 1
    }
    count += try store.emptyRemoved()
    try Reconciliation(catalog: catalog, store: store).forgetRemovals()
    count += try AbandonedWork(catalog: catalog, store: store, now: now).remove()
    return try count + settleUnfinished(createdSince: start)
  }

  private func settleUnfinished(createdSince start: Timestamp) throws(StorageError) -> Int {
    var count = 0
    for id in try store.recordingFolders() where id.created >= start {
      var isLeft = try store.isUnfinished(id)
      if !isLeft, isOld(id) { isLeft = try store.fileNames(of: id).isEmpty }
      guard isLeft else { continue }
      switch try catalog.claim(on: id) {
      case .owned: catalog.describe(id)
      case .removed, .finished, .unknown:
        guard isOld(id) else { continue }
        store.removeFolderIfUnused(of: id)
        if FileSystem.isFolder(store.folder(of: id)) { try store.setAside(id) }
        count += 1
      }
    }
    return count
  }

  private func isOld<Entity>(_ id: Identifier<Entity>) -> Bool { AbandonedWork.isOld(id, now) }

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

  /// Returns the IDs that name the work folders of jobs and previews.
  func workFolders() throws(StorageError) -> [JobID] { try FileSystem.names(in: jobs).compactMap { JobID($0) } }

  /// Returns the IDs that name folders of recordings.
  func recordingFolders() throws(StorageError) -> [RecordingID] {
    try FileSystem.names(in: recordings).compactMap { RecordingID($0) }
  }

  /// Removes the folders whose removal was begun, and returns their number.
  func emptyRemoved() throws(StorageError) -> Int {
    let begun = try FileSystem.names(in: removed).filter { UUIDv7($0) != nil }
    var (count, failure) = (0, nil as StorageError?)
    for name in begun {
      // One that can't be removed must not keep the others.
      do throws(StorageError) {
        try FileSystem.remove(removed + "/" + name)
        count += 1
      } catch {
        failure = error
      }
    }
    if let failure, count == 0 { throw failure }
    return count
  }
}
