import Glibc
import Synchronization

/// Control groups of workers, one for each, that limit the threads of a worker and of the programs that it starts
/// (cgroups v2, controller `pids`).
///
/// For a service that isn't root and whose own group systemd has handed over to its user (`Delegate=pids`). Root's
/// ffmpeg runs as a user whose number of threads is limited.
///
///     stillwave.service/           the unit's; no process is left in it, as the kernel demands
///       service/                   the service and the template
///       worker-1/ worker-2/ …      a worker and its ffmpeg
package final class WorkerGroups: Sendable {
  private let folder: String
  private let next = Atomic(1)
  /// Those that couldn't be removed.
  private let left = Mutex<[String]>([])

  /// The groups of this process's workers; nil if there are none. The first use moves this process.
  package static let own = WorkerGroups()

  /// Moves this process into a group of its own below the present one. nil if that isn't this user's. Call it before
  /// the process has children.
  private convenience init?() {
    // 0::/system.slice/stillwave.service
    guard geteuid() != 0, let line = Self.text("/proc/self/cgroup")?.split(separator: "\n").last,
      line.hasPrefix("0::/")
    else { return nil }
    self.init(dividing: "/sys/fs/cgroup" + line.dropFirst(3))
  }

  /// Divides the group whose folder this is.
  init?(dividing folder: String) {
    self.folder = folder
    var status = stat()
    guard unsafe stat(folder, &status) == 0, status.st_uid == geteuid(),
      Self.text(folder + "/cgroup.controllers")?.split(whereSeparator: \.isWhitespace).contains("pids") == true,
      unsafe mkdir(folder + "/service", 0o755) == 0 || errno == EEXIST,
      Self.write("\(getpid())", to: folder + "/service/cgroup.procs"),
      Self.write("+pids", to: folder + "/cgroup.subtree_control")
    else { return nil }
  }

  /// Creates groups in a folder as it is.
  init(in folder: String) { self.folder = folder }

  /// Makes a group of at most this number of threads and returns its folder; nil if that fails.
  func make(threads: Int) -> String? {
    let path = "\(folder)/worker-\(next.wrappingAdd(1, ordering: .relaxed).oldValue)"
    guard unsafe mkdir(path, 0o755) == 0 else { return nil }
    guard Self.write("\(threads)", to: path + "/pids.max") else {
      remove(path)
      return nil
    }
    return path
  }

  /// Removes a group whose worker has ended, or later, if its ffmpeg hasn't.
  func remove(_ path: String) {
    left.withLock { left in left = (left + [path]).filter { unsafe rmdir($0) != 0 && errno == EBUSY } }
  }

  private static func write(_ text: String, to path: String) -> Bool {
    let file = unsafe open(path, O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    let bytes = Array(text.utf8)
    return unsafe Glibc.write(file, bytes, bytes.count) == bytes.count
  }

  /// The text of a small file.
  private static func text(_ path: String) -> String? {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = unsafe read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}
