import CLinux
import Dispatch
import Glibc

/// Files that a worker has lent to ffmpeg's user and could not take back, because it was ended first.
package enum LentFiles {
  /// Gives those of the files that are still lent their mode back, in the background, as soon as no program uses them
  /// any more. Others stay as they are, and so does what isn't there.
  package static func takeBack(_ paths: [String]) {
    // Only root lends.
    guard geteuid() == 0 else { return }
    for path in paths { takeBack(path, attempts: attempts) }
  }

  /// Whether a file is lent at this moment. If so, it is taken back as above.
  package static func settle(_ path: String) -> Bool {
    guard geteuid() == 0 else { return false }
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else { return false }
    let isLent = stillwave_is_lent(file)
    close(file)
    if isLent { takeBack(path, attempts: attempts) }
    return isLent
  }

  /// For a minute. A program that another worker has started may use one for longer; that worker takes it back.
  private static let attempts = 1200

  private static func takeBack(_ path: String, attempts: Int) {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard file >= 0 else { return }
    defer { close(file) }
    guard stillwave_is_lent(file), !stillwave_take_back(file), attempts > 1 else { return }
    queue.asyncAfter(deadline: .now() + 0.05) { takeBack(path, attempts: attempts - 1) }
  }

  private static let queue = DispatchQueue(label: "lent files")
}
