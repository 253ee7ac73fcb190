// The disk of a node whose media are in a bucket. It belongs to one process, and may be lost: what an earlier process
// left on it is removed at the start, because its jobs begin again, and its uploads go on from what is in the bucket.

import Glibc

extension MediaStore {
  /// Opens a disk for files in progress, and claims it. Creates missing folders, and removes what an earlier process
  /// left; the work folder of a worker that still runs stays.
  ///
  /// Throws `.inUse` if another process has it, or if it is a data folder.
  package convenience init(scratch directory: String) throws(StorageError) {
    self.init(in: directory, node: nil, hasMedia: false)
    if isShared || FileSystem.identity(of: catalogPath) != nil || FileSystem.isFolder(recordings) {
      throw .inUse(path: directory)
    }
    try FileSystem.makeFolders(directory)
    FileSystem.makePrivate(directory)
    for folder in [incoming, uploads, jobs] { try FileSystem.makeFolder(folder) }
    try claim()
    try clearScratch()
  }

  /// Returns the name of a new file, which the next start removes if it is still there.
  package func temporaryPath() -> String { "\(incoming)/\(UUIDv7().text).part" }

  private func clearScratch() throws(StorageError) {
    var report = SweepReport()
    removeIncoming(&report)
    for name in try FileSystem.names(in: uploads) { try FileSystem.remove(uploads + "/" + name) }
    for id in try workFolders() where !isHeld(id) { removeWorkFolder(of: id) }
    if let failure = report.failures.first { throw failure }
  }

  /// Creates a file for an upload's bytes, which are kept elsewhere. It is removed with the last reference.
  package func makeTemporaryPart() throws(StorageError) -> UploadPart {
    try checkClaim()
    return try UploadPart(path: "\(uploads)/\(UUIDv7().text).part", flags: O_CREAT | O_EXCL, isTemporary: true)
  }
}
