import Glibc
import Synchronization

/// A file that appears whole or not at all: written under a temporary name in the same folder, then renamed. `-` is
/// standard output, to which the whole file is copied instead: formats that are written with seeking need a file.
struct OutputFile: ~Copyable {
  /// The name that stands for standard output and input.
  static let standardName = "-"

  let path: String
  let temporaryPath: String

  /// Throws where something other than a file stands at `path`: a rename would put a file in a device's place.
  init(path: String) throws(OutputFailure) {
    try self.init(path: path, through: TemporaryFiles.shared.newPath(near: path))
  }

  /// The same for a temporary name that was given out already.
  init(path: String, through temporaryPath: String) throws(OutputFailure) {
    var status = stat()
    if path != Self.standardName, unsafe stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      throw OutputFailure(operation: "writing", path: path, errno: EINVAL)
    }
    self.path = path
    self.temporaryPath = temporaryPath
  }

  /// Makes the file appear under its own name. Throws `OutputFailure` where that fails; nothing is left then.
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

/// The unfinished files of this process, removed when it fails or is interrupted.
final class TemporaryFiles: Sendable {
  static let shared = TemporaryFiles()

  private struct Kept {
    var paths: Set<String> = []
    /// What lies beside no file of the user's is in a folder of its own, which others can't look into.
    var folder: String?
  }
  private let kept = Mutex(Kept())

  /// A name beside `path`, or for standard output in the private folder, which must have been made.
  /// `label` says what for.
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

  /// Makes the private folder, in TMPDIR, where it is needed. Throws where it can't be made.
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

  /// Makes a file of no bytes, which those may read whom the umask lets.
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
