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
}

/// The segments that one worker has finished and that have not been taken.
final class SegmentQueue<Result: Sendable>: Sendable {
  private struct State {
    /// The last one is nil if the worker has come to the end of the file.
    var finished: [DecodedSegment<Result>?] = []
    var isCancelled = false
  }

  private let state = Mutex(State())
  private let ready = DispatchSemaphore(value: 0)
  private let rooms = DispatchSemaphore(value: 0)

  /// Creates a queue for a worker that may be `limit` segments ahead.
  init(limit: Int) {
    // Signals one by one: a semaphore must not be destroyed below its initial value.
    for _ in 0..<limit { rooms.signal() }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Waits until the worker may begin a segment. Returns false after cancellation.
  func waitForRoom() -> Bool {
    rooms.wait()
    guard isCancelled else { return true }
    // Keeps the semaphore signaled for later calls.
    rooms.signal()
    return false
  }

  /// Adds a segment, or nil at the end of the file.
  func put(_ segment: DecodedSegment<Result>?) {
    state.withLock { $0.finished.append(segment) }
    ready.signal()
  }

  /// Removes and returns the next segment, waiting until there is one; nil at the end of the file.
  func take() -> DecodedSegment<Result>? {
    ready.wait()
    let segment = state.withLock { $0.finished.removeFirst() }
    rooms.signal()
    return segment
  }

  /// Stops the worker at its next chunk.
  func cancel() {
    state.withLock { $0.isCancelled = true }
    rooms.signal()
  }
}
