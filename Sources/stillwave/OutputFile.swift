import Glibc
import Synchronization

/// A file that appears only once it's complete: it's written under a temporary name in the same folder and then
/// renamed. For `-`, the complete file is copied to standard output, because formats written with seeking need a file.
struct OutputFile: ~Copyable {
  /// The name that stands for standard input and output.
  static let standardName = "-"

  let path: String
  let temporaryPath: String

  /// Throws if `path` isn't a regular file: a rename would replace a device with a file.
  init(path: String) throws(OutputFailure) {
    try self.init(path: path, through: TemporaryFiles.shared.newPath(near: path))
  }

  /// Creates a file with a temporary name made earlier.
  init(path: String, through temporaryPath: String) throws(OutputFailure) {
    var status = stat()
    if path != Self.standardName, unsafe stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      throw OutputFailure(operation: "writing", path: path, errno: EINVAL)
    }
    self.path = path
    self.temporaryPath = temporaryPath
  }

  /// Renames the file to its final name. Throws `OutputFailure` on failure, and leaves nothing behind.
  consuming func commit() throws(OutputFailure) {
    guard path != Self.standardName else { return try copyToStandardOutput() }
    guard unsafe rename(temporaryPath, path) == 0 else {
      throw OutputFailure(operation: "rename", path: path, errno: errno)
    }
  }

  private func copyToStandardOutput() throws(OutputFailure) {
    let descriptor = unsafe open(temporaryPath, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw OutputFailure(operation: "open", path: path, errno: errno) }
    defer { close(descriptor) }
    while true {
      let piece = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
        count = unsafe max(0, read(descriptor, buffer.baseAddress, buffer.count))
      }
      guard !piece.isEmpty else { return }
      StandardStreams.write(piece)
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

/// The process's unfinished files, removed when it fails or is interrupted.
final class TemporaryFiles: Sendable {
  static let shared = TemporaryFiles()

  private struct Kept {
    var paths: Set<String> = []
    /// The private folder of files that aren't next to one of the user's.
    var folder: String?
  }
  private let kept = Mutex(Kept())

  /// Returns a name next to `path`, or for standard output in the private folder, which must exist. `label` is part of
  /// the name and says what the file is for.
  func newPath(near path: String, _ label: String = "result") -> String {
    let suffix = String(UInt64.random(in: .min ... .max), radix: 36)
    return kept.withLock { kept in
      let isStandard = path == OutputFile.standardName
      let temporary =
        isStandard ? "\(kept.folder ?? Self.parent)/\(label).\(suffix)" : "\(path).\(label).\(suffix).part"
      kept.paths.insert(temporary)
      return temporary
    }
  }

  /// Creates the private folder in TMPDIR if needed. Throws if it can't be created.
  func makeFolder() throws(CommandFailure) {
    let parent = Self.parent
    guard kept.withLock({ $0.folder }) == nil else { return }
    var name = Array("\(parent)/stillwave-XXXXXX".utf8CString)
    let folder = unsafe name.withUnsafeMutableBufferPointer { name in
      unsafe name.baseAddress.flatMap { unsafe mkdtemp($0) }.map { unsafe String(cString: $0) }
    }
    guard let folder else { throw CommandFailure(system: errno, on: parent) }
    kept.withLock { $0.folder = folder }
  }

  /// Creates an empty file, readable by those the umask permits.
  func create(_ path: String) throws(CommandFailure) {
    let descriptor = unsafe open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { throw CommandFailure(system: errno, on: path) }
    close(descriptor)
  }

  private static var parent: String { unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp" }

  func remove(_ path: String) {
    if kept.withLock({ $0.paths.remove(path) }) != nil { unsafe _ = unlink(path) }
  }

  func removeAll() {
    let (paths, folder) = kept.withLock { kept in
      defer { kept = Kept() }
      return (kept.paths, kept.folder)
    }
    for path in paths { unsafe _ = unlink(path) }
    if let folder { unsafe _ = rmdir(folder) }
  }
}
