import CLinux
import Dispatch
import Synchronization

/// Returns memory to the system that malloc has kept after a flood of requests.
///
/// glibc keeps freed memory in the arena of the thread that allocated it, up to eight arenas per core, and returns only
/// what is free at the very end of an arena. After a flood, it keeps most of the peak. `malloc_trim` returns every free
/// page.
///
/// Requests count when they end, because that is when their memory is freed: a flood of slow uploads may last for
/// longer than the pause.
final class IdleMemory: Sendable {
  private let pauseSeconds: Double
  private let trim: @Sendable () -> Void
  private let queue = DispatchQueue(label: "idle memory", qos: .utility)
  private let requests = Atomic<Int>(0)
  private let isWatching = Atomic<Bool>(false)
  private let trimmedAt = Atomic<Int>(0)

  /// With fewer requests than this, a check isn't worth it.
  static let requestsWorthALook = 20

  /// Creates an instance that calls `trim` on its own queue when many requests are followed by `pauseSeconds` with
  /// almost none.
  init(pauseSeconds: Double = 10, trim: @escaping @Sendable () -> Void = { stillwave_trim_memory() }) {
    (self.pauseSeconds, self.trim) = (pauseSeconds, trim)
  }

  /// Takes nanoseconds, except for the first request after a pause.
  func requestEnded() {
    let count = requests.wrappingAdd(1, ordering: .relaxed).newValue
    guard count - trimmedAt.load(ordering: .relaxed) >= Self.requestsWorthALook,
      !isWatching.load(ordering: .relaxed), !isWatching.exchange(true, ordering: .acquiringAndReleasing)
    else { return }
    watch(from: count)
  }

  private func watch(from count: Int) {
    queue.asyncAfter(deadline: .now() + pauseSeconds) { [weak self] in self?.look(since: count) }
  }

  private func look(since count: Int) {
    let now = requests.load(ordering: .relaxed)
    guard now - count < Self.requestsWorthALook else { return watch(from: now) }
    trim()
    trimmedAt.store(now, ordering: .relaxed)
    isWatching.store(false, ordering: .releasing)
  }
}
