import Glibc

/// Keeps two workers of one job apart: one that a killed service left behind and one that the restarted service began.
enum WorkFolderLock {
  /// Waits until no other process holds `folder`, then holds it until this process ends. Throws `OutputFailure` if the
  /// folder can't be opened.
  static func take(_ folder: String) throws(OutputFailure) {
    let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw OutputFailure(operation: "open", path: folder, errno: errno) }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw OutputFailure(operation: "flock", path: folder, errno: errno) }
    }
  }
}
