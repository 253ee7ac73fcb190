import Dispatch
import Synchronization

/// A segment that a worker has decoded and processed.
struct DecodedSegment<Result: Sendable>: Sendable {
  /// Number of frames; fewer than a segment has if the file ends in it.
  var frames: Int64 = 0
  /// Its first samples, to be compared with the previous segment's tail.
  var head: [Int16] = []
  /// The samples that follow it.
  var tail: [Int16] = []
  /// Whether the file ends in the segment or its tail.
  var endsFile = false
  var result: Result?
  var nonFiniteSamples: Int64 = 0
  var lostFrames: Int64 = 0
  var excess = Excess()
}

/// Hands out the numbers of segments to workers, and passes on what they have finished in order.
///
/// Any worker gets the next number: if each had its own, one that another thread keeps from its core would hold up all.
final class SegmentQueue<Result: Sendable>: Sendable {
  private struct State {
    /// By number. Nil if the file ends before the segment.
    var finished: [Int: DecodedSegment<Result>?] = [:]
    /// The next to be decoded, and to be passed on.
    var (begun, taken) = (0, 0)
    var isCancelled = false
  }

  private let state = Mutex(State())
  /// Signaled with each segment that is finished, and maybe more often than `take` waits.
  private let ready = DispatchSemaphore(value: 0)
  private let rooms = DispatchSemaphore(value: 0)

  /// Creates a queue of which `limit` segments may be begun and not passed on.
  init(limit: Int) {
    // Signals one by one: a semaphore must not be destroyed below its initial value.
    for _ in 0..<limit { rooms.signal() }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Waits until a worker may begin a segment, and returns its number; nil after cancellation.
  func begin() -> Int? {
    rooms.wait()
    let number = state.withLock { state -> Int? in
      guard !state.isCancelled else { return nil }
      state.begun += 1
      return state.begun - 1
    }
    // Keeps the semaphore signaled for later calls.
    if number == nil { rooms.signal() }
    return number
  }

  /// Adds a segment; nil if the file ends before it.
  func put(_ segment: DecodedSegment<Result>?, _ number: Int) {
    state.withLock { $0.finished[number] = .some(segment) }
    ready.signal()
  }

  /// Removes and returns the next segment, waiting until there is one; nil at the end of the file.
  func take() -> DecodedSegment<Result>? {
    while true {
      let next = state.withLock { state -> DecodedSegment<Result>?? in
        guard let next = state.finished.removeValue(forKey: state.taken) else { return nil }
        state.taken += 1
        return .some(next)
      }
      if let next {
        rooms.signal()
        return next
      }
      ready.wait()
    }
  }

  /// Stops the workers at their next chunk.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    rooms.signal()
  }
}
