import Dispatch
import Glibc
import Synchronization
import Terms

/// Looks at what workers and readers use, once a second while there are any, and ends those that exceed their
/// allowance.
///
/// A worker can start no thread and make no file, and the user that ffmpeg runs as under root has a limit of threads.
/// This holds a program in ffmpeg's place where the system has no such limit.
final class WorkerWatch: Sendable {
  /// The watch over all workers of this process. It goes by the machine's clock, because workers run by it.
  static let shared = WorkerWatch(everySeconds: 1)

  private struct Watched {
    let folder: String?
    let allowance: WorkerAllowance
    let end: @Sendable (WorkerExcess) -> Void
  }

  private let pause: Double?
  private let queue = DispatchQueue(label: "worker watch")
  private let watched = Mutex<[pid_t: Watched]>([:])

  /// Creates a watch; nil for one that looks only if asked to.
  init(everySeconds pause: Double?) { self.pause = pause }

  /// Watches a process until `remove`. Calls `end` if it exceeds its allowance, perhaps more than once.
  func add(
    _ process: pid_t, folder: String?, _ allowance: WorkerAllowance, end: @escaping @Sendable (WorkerExcess) -> Void
  ) {
    let isFirst = watched.withLock { watched in
      watched[process] = Watched(folder: folder, allowance: allowance, end: end)
      return watched.count == 1
    }
    if isFirst { lookLater() }
  }

  /// Stops watching a process that has ended.
  func remove(_ process: pid_t) { watched.withLock { _ = $0.removeValue(forKey: process) } }

  /// Looks at all processes now.
  func look() {
    for (process, watched) in watched.withLock({ $0 }) {
      let usage = WorkerUsage(of: process, folder: watched.folder, mostFiles: watched.allowance.files + 1)
      if let excess = watched.allowance.excess(of: usage) { watched.end(excess) }
    }
  }

  private func lookLater() {
    guard let pause else { return }
    Clock.system.after(pause, on: queue) { [self] in
      look()
      if watched.withLock({ !$0.isEmpty }) { lookLater() }
    }
  }
}
