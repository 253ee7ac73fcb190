import Glibc

/// Keeps two workers of one job apart: the one that a killed service left behind, and the one that its next start
/// began.
enum WorkFolderLock {
  /// Waits until no other process holds `folder`, then holds it to the end of this one. Throws `OutputFailure` where
  /// the folder can't be opened.
  static func take(_ folder: String) throws(OutputFailure) {
    let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw OutputFailure(operation: "open", path: folder, errno: errno) }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw OutputFailure(operation: "flock", path: folder, errno: errno) }
    }
  }
}
