import Glibc
import Synchronization
import Workers

/// What a worker and the programs that it has started use of what no limit of the system bounds.
struct WorkerUsage: Sendable, Equatable {
  /// Their threads.
  var threads = 0
  /// The files in the job's folder.
  var files = 0
  /// The room on the disk of those files.
  var bytes: Int64 = 0

  /// Measures a process, its children, and the files in a folder, of which it counts at most `mostFiles`.
  init(of process: pid_t, folder: String?, mostFiles: Int) {
    let children = Self.words("/proc/\(process)/task/\(process)/children").compactMap { pid_t($0) }
    for process in [process] + children { threads += Self.threads(of: process) }
    guard let folder, let list = unsafe opendir(folder) else { return }
    defer { unsafe _ = closedir(list) }
    while files < mostFiles, let entry = unsafe readdir(list) {
      var status = stat()
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { unsafe UnsafeRawPointer($0) }
      let found = unsafe fstatat(
        dirfd(list), name.assumingMemoryBound(to: CChar.self), &status, AT_SYMLINK_NOFOLLOW)
      guard found == 0, status.st_mode & S_IFMT != S_IFDIR else { continue }
      files += 1
      bytes += Int64(status.st_blocks) * 512
    }
  }

  private static func threads(of process: pid_t) -> Int {
    let words = words("/proc/\(process)/status")
    guard let place = words.firstIndex(of: "Threads:"), place + 1 < words.count else { return 0 }
    return Int(words[place + 1]) ?? 0
  }

  /// The words of a small file; none if it can't be read.
  private static func words(_ path: String) -> [Substring] {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return [] }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 8192)
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
    return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self).split(whereSeparator: \.isWhitespace)
  }
}

/// How much of that a worker may use.
struct WorkerAllowance: Sendable, Equatable {
  var threads: Int
  var files: Int
  var bytes: Int64

  /// A worker with a decoder and an encoder, of which each may have a few threads per core.
  static let threads = 64 + 4 * sysconf(Int32(_SC_NPROCESSORS_ONLN))
  /// No work makes more than ten.
  private static let files = 32
  /// A working copy, the sound between two stages, the result and its copy with pictures.
  private static let fullFiles: Int64 = 4

  init(_ fence: WorkerFence) {
    self.init(
      threads: Self.threads, files: Self.files,
      bytes: max(fence.outputBytes.multipliedReportingOverflow(by: Self.fullFiles).partialValue, fence.outputBytes))
  }

  init(threads: Int, files: Int, bytes: Int64) { (self.threads, self.files, self.bytes) = (threads, files, bytes) }

  /// What a reader may use, which makes no file.
  static let reader = WorkerAllowance(threads: threads, files: 0, bytes: 0)

  /// The first limit that is exceeded.
  func excess(of usage: WorkerUsage) -> WorkerExcess? {
    if usage.threads > threads { return .threads(limit: threads) }
    if usage.files > files { return .files(limit: files) }
    return usage.bytes > bytes ? .bytes(limit: bytes) : nil
  }
}

/// The limit for which the service ended a worker.
package enum WorkerExcess: Sendable, Equatable {
  /// The threads of the worker and its programs.
  case threads(limit: Int)
  /// The files in its folder.
  case files(limit: Int)
  /// The bytes of these files together.
  case bytes(limit: Int64)
}
