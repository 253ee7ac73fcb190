import CLinux
import Dispatch
import HTTP
import Synchronization

/// Gives memory that malloc has kept back to the system once a flood of requests is over.
///
/// glibc keeps what was freed in the arena of the thread that asked for it, up to eight arenas a core, and gives back
/// only what is free at an arena's very end: after a flood that is most of the peak. `malloc_trim` gives back every
/// free page.
final class IdleMemory: Sendable {
  private let pauseSeconds: Double
  private let trim: @Sendable () -> Void
  private let queue = DispatchQueue(label: "idle memory", qos: .utility)
  private let requests = Atomic<Int>(0)
  private let isWatching = Atomic<Bool>(false)
  private let trimmedAt = Atomic<Int>(0)

  /// Fewer requests than this leave nothing worth a look.
  static let requestsWorthALook = 20

  /// `trim` is called, on a queue of its own, when so many seconds have brought next to no request after many.
  init(pauseSeconds: Double = 10, trim: @escaping @Sendable () -> Void = { stillwave_trim_memory() }) {
    (self.pauseSeconds, self.trim) = (pauseSeconds, trim)
  }

  /// Another responder, each of whose requests is counted.
  func counting(_ next: any HTTPResponder) -> any HTTPResponder { Counting(memory: self, next: next) }

  private struct Counting: HTTPResponder {
    let memory: IdleMemory
    let next: any HTTPResponder

    func respond(to request: HTTPRequest) -> HTTPAnswer {
      memory.requestCame()
      return next.respond(to: request)
    }
  }

  /// Takes nanoseconds, but for the first after a while.
  func requestCame() {
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
