import Glibc
import Synchronization

/// A file that appears whole or not at all: it is written under a temporary name in the same folder, then renamed. For
/// `-`, the finished file is copied to standard output: some formats can't be written without seeking.
struct OutputFile: ~Copyable {
  /// The name that stands for standard input and output.
  static let standardName = "-"

  let path: String
  let temporaryPath: String

  /// Throws if `path` is something other than a file, because renaming would replace a device with a file, or if its
  /// folder can't be written to.
  init(path: String) throws(OutputFailure) {
    try self.init(path: path, through: TemporaryFiles.shared.newPath(near: path))
  }

  /// Creates a file with a temporary name made earlier.
  init(path: String, through temporaryPath: String) throws(OutputFailure) {
    var status = stat()
    if path != Self.standardName, unsafe stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      throw OutputFailure(operation: "writing", path: path, errno: EINVAL)
    }
    let slash = path.lastIndex(of: "/")
    let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    guard unsafe path == Self.standardName || access(folder, W_OK | X_OK) == 0 else {
      throw OutputFailure(operation: "writing", path: path, errno: errno)
    }
    self.path = path
    self.temporaryPath = temporaryPath
  }

  /// Gives the file its final name. If that fails, throws `OutputFailure` and leaves nothing behind.
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

/// The unfinished files of this process. They are removed if it fails or is interrupted.
final class TemporaryFiles: Sendable {
  static let shared = TemporaryFiles()

  private struct Kept {
    var paths: Set<String> = []
    /// A private folder for temporary files that don't belong beside one of the user's files.
    var folder: String?
  }
  private let kept = Mutex(Kept())

  /// Returns a new name beside `path`, or in the private folder for standard output; that folder must exist.
  /// `label` says what the file is for.
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

  /// Creates the private folder in TMPDIR unless it exists. Throws if that fails.
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

  /// Creates an empty file with the permissions that the umask leaves.
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
