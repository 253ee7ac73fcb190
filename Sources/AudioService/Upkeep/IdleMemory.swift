import CLinux
import Dispatch
import FoundationEssentials
import Synchronization
import Terms

/// Returns memory to the system that malloc, the catalog and open waveforms have kept after a flood of requests.
///
/// glibc keeps freed memory in the arena of the thread that allocated it, except for long stretches at the arena's end.
/// After a flood, it keeps most of the peak. `stillwave_trim_memory` returns that.
///
/// How long such a stretch must be grows to twice the largest block ever freed, up to 64 MB, unless it's bounded. The
/// bound is well above the buffers of slices that are made of samples: if they came from the system each time, its
/// clearing of pages would take a third of the time of such a slice.
///
/// Requests count when they end, because that is when their memory is freed: a flood of slow uploads may last for
/// longer than the pause. A long upload counts as several requests. If requests never pause, as when clients poll,
/// memory is returned every five minutes.
final class IdleMemory: Sendable {
  private let clock: Clock
  private let pauseSeconds: Double
  private let pausesToWait: Int
  private let trim: @Sendable () -> Void
  private let queue = DispatchQueue(label: "idle memory", qos: .utility)
  private let requests = Atomic<Int>(0)
  private let isWatching = Atomic<Bool>(false)
  private let trimmedAt = Atomic<Int>(0)

  /// With fewer requests than this, a check isn't worth it.
  static let requestsWorthALook = 20

  /// An upload of this many bytes counts as one more request.
  static let bytesLikeARequest: Int64 = 1 << 20

  /// The bound: blocks of this size, and stretches at the end of an arena, are returned when they are freed.
  private static let bytesKept: Int32 = 8 << 20

  /// Bounds what malloc keeps from now on, in the whole process.
  static func boundKept() {
    let cores = ProcessInfo.processInfo.activeProcessorCount
    stillwave_bound_kept_memory(bytesKept, Int32(clamping: 4 + 2 * cores))
  }

  /// Creates an instance that calls `trim` on its own queue when many requests are followed by `pauseSeconds` with
  /// almost none, or after `pausesToWait` times as long.
  init(
    _ clock: Clock, pauseSeconds: Double = 10, pausesToWait: Int = 30, trim: @escaping @Sendable () -> Void
  ) {
    self.clock = clock
    (self.pauseSeconds, self.pausesToWait, self.trim) = (pauseSeconds, pausesToWait, trim)
  }

  /// Takes nanoseconds, except for the first request after a pause. `bytesReceived`: the length of the body.
  func requestEnded(bytesReceived: Int64 = 0) {
    let weight = 1 + Int(clamping: bytesReceived / Self.bytesLikeARequest)
    watchIfWorthIt(requests.wrappingAdd(weight, ordering: .sequentiallyConsistent).newValue)
  }

  private func watchIfWorthIt(_ count: Int) {
    guard count - trimmedAt.load(ordering: .relaxed) >= Self.requestsWorthALook,
      !isWatching.load(ordering: .sequentiallyConsistent), !isWatching.exchange(true, ordering: .acquiringAndReleasing)
    else { return }
    watch(from: count, pausesLeft: pausesToWait)
  }

  private func watch(from count: Int, pausesLeft: Int) {
    clock.after(pauseSeconds, on: queue) { [weak self] in
      self?.look(since: count, pausesLeft: pausesLeft - 1)
    }
  }

  private func look(since count: Int, pausesLeft: Int) {
    let now = requests.load(ordering: .relaxed)
    guard now - count < Self.requestsWorthALook || pausesLeft == 0 else {
      return watch(from: now, pausesLeft: pausesLeft)
    }
    trim()
    trimmedAt.store(now, ordering: .relaxed)
    isWatching.store(false, ordering: .sequentiallyConsistent)
    // Requests that ended meanwhile found that somebody watches.
    watchIfWorthIt(requests.load(ordering: .sequentiallyConsistent))
  }
}
