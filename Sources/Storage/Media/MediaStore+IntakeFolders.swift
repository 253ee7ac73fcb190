import Synchronization

// The work folders of workers that take in short uploads are used again and again. ext4 finds a free inode for a new
// file by going through those that were freed within the last minute, so creating and removing a folder for each upload
// would take longer the more uploads there are.

extension MediaStore {
  /// Maximum number of unused folders to keep.
  private static let spareLimit = 64

  /// The ending of a folder's name.
  static let intakeSuffix = ".work"

  /// Returns the path of an empty folder. Return it with `giveBack`.
  package func takeIntakeFolder() throws(StorageError) -> String {
    if let spare = spareFolders.withLock({ $0.popLast() }) { return spare }
    try checkClaim()
    let path = incoming + "/" + UUIDv7().text + Self.intakeSuffix
    try FileSystem.makeFolder(path)
    return path
  }

  /// Empties a folder for the next worker. No process may use it any more. If this fails, the next start's sweep
  /// removes it.
  package func giveBack(intakeFolder path: String) {
    do {
      for name in try FileSystem.names(in: path) { try FileSystem.remove(path + "/" + name) }
    } catch {
      return
    }
    let isKept = spareFolders.withLock { spare in
      guard spare.count < Self.spareLimit else { return false }
      spare.append(path)
      return true
    }
    if !isKept { try? FileSystem.remove(path) }
  }
}
