import CLinux
import Dispatch
import Glibc
import Terms

/// Files that a worker has lent to ffmpeg's user but was ended before it could take them back.
package enum TemporaryAccess {
  /// Restores the mode of those files that are still lent, in the background, once no program uses them any more. Other
  /// files and missing files are left alone.
  package static func revoke(_ paths: [String]) {
    // Only root lends files.
    guard geteuid() == 0 else { return }
    for path in paths { revoke(path, attempts: attempts) }
  }

  /// Whether a file is lent right now. If so, it's taken back as above.
  package static func settle(_ path: String) -> Bool {
    guard geteuid() == 0 else { return false }
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else { return false }
    let isLent = stillwave_is_lent(file)
    close(file)
    if isLent { revoke(path, attempts: attempts) }
    return isLent
  }

  /// Tries for a minute. A program started by another worker may use a file for longer; that worker takes it back.
  private static let attempts = 1200

  private static func revoke(_ path: String, attempts: Int) {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else { return }
    defer { close(file) }
    guard stillwave_is_lent(file), !stillwave_take_back(file), attempts > 1 else { return }
    // Another process still has it.
    Clock.system.after(0.05, on: queue) { revoke(path, attempts: attempts - 1) }
  }

  private static let queue = DispatchQueue(label: "lent files")
}
