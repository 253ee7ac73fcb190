import Dispatch
import Glibc
import Synchronization

/// A file that appears whole or not at all: written under a temporary name in the same folder, then renamed.
struct OutputFile: ~Copyable {
  let path: String
  let temporaryPath: String

  /// Throws where something other than a file stands at `path`: a rename would put a file in a device's place.
  init(path: String) throws(OutputFailure) {
    var status = stat()
    if unsafe stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      throw OutputFailure(operation: "writing", path: path, errno: EINVAL)
    }
    self.path = path
    temporaryPath = TemporaryFiles.shared.newPath(near: path)
  }

  /// The same for a temporary name that was given out already.
  init(path: String, through temporaryPath: String) throws(OutputFailure) {
    self.path = path
    self.temporaryPath = temporaryPath
  }

  /// Makes the file appear under its own name. Throws `OutputFailure` where that fails; nothing is left then.
  consuming func commit() throws(OutputFailure) {
    guard unsafe rename(temporaryPath, path) == 0 else {
      throw OutputFailure(operation: "rename", path: path, errno: errno)
    }
  }

  deinit { TemporaryFiles.shared.remove(temporaryPath) }
}

struct OutputFailure: Error, CustomStringConvertible {
  let operation: String
  let path: String
  let errno: Int32

  var description: String { unsafe "\(path): \(operation) failed: \(String(cString: strerror(errno)))" }
}

/// The unfinished files of this process, removed when it fails or is interrupted.
final class TemporaryFiles: Sendable {
  static let shared = TemporaryFiles()
  private let paths = Mutex<Set<String>>([])

  func newPath(near path: String) -> String {
    let suffix = String(UInt64.random(in: .min ... .max), radix: 36)
    let temporary = "\(path).\(suffix).part"
    paths.withLock { _ = $0.insert(temporary) }
    return temporary
  }

  func remove(_ path: String) {
    if paths.withLock({ $0.remove(path) }) != nil { unsafe _ = unlink(path) }
  }

  func removeAll() {
    for path in paths.withLock({ $0 }) { remove(path) }
  }
}
