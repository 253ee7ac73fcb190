import CLinux
import Dispatch
import Glibc
import Synchronization
import Terms

/// Writes log lines on a thread of its own, so that a slow or stuck reader of the log blocks nothing else.
///
/// Lines are collected for a twentieth of a second, or until there are 64 KB of them, and written with one system
/// call; a line that can't wait takes the others along. The buffer is bounded: when it's full, lines are dropped, and
/// the next line written says how many.
final class LogWriter: Sendable {
  /// The process's standard error.
  static let standardError = LogWriter(descriptor: STDERR_FILENO) { stillwave_count_waiting_log($0 ? 1 : -1) }

  private struct State {
    var waiting: [UInt8] = []
    var dropped = 0
    /// Whether the waiting lines are to be written at once.
    var isUrgent = false
    var isWriting = false
    var isStarted = false
    /// The number of callers of `flush`.
    var flushing = 0
  }

  private let descriptor: Int32
  private let limit: Int
  private let pauseSeconds: Double
  private let clock: Clock
  private let whenWaiting: @Sendable (Bool) -> Void
  private let state = Mutex(State())
  /// Runs one endless block, so in effect it's a thread.
  private let queue = DispatchQueue(label: "log")
  /// Signaled for the first waiting line, for the first urgent one, and when all are written.
  private let news = DispatchSemaphore(value: 0)
  private let haste = DispatchSemaphore(value: 0)
  private let calm = DispatchSemaphore(value: 0)

  /// More waiting bytes than this are written at once.
  private static let mostBytesAtOnce = 64 * 1024

  /// Creates a writer without waiting lines.
  ///
  /// `limit` is the maximum number of waiting bytes. `pauseSeconds`: how long lines are collected. `whenWaiting` is
  /// called with true for the first of the lines that are written together, and with false when they are written.
  init(
    descriptor: Int32, limit: Int = 4 << 20, pauseSeconds: Double = 0.05, clock: Clock = .system,
    whenWaiting: @escaping @Sendable (Bool) -> Void = { _ in }
  ) {
    self.descriptor = descriptor
    self.limit = limit
    (self.pauseSeconds, self.clock) = (pauseSeconds, clock)
    self.whenWaiting = whenWaiting
  }

  /// Queues a line, which ends with a newline. Never blocks. `isUrgent`: whether it's written without waiting for
  /// others.
  func write(_ line: [UInt8], isUrgent: Bool = false) {
    let (isFirst, needsHaste, needsThread) = state.withLock { state in
      guard state.waiting.count + line.count <= limit else {
        state.dropped += 1
        return (false, false, false)
      }
      let isFirst = state.waiting.isEmpty
      state.waiting.append(contentsOf: line)
      let needsHaste = !state.isUrgent && (isUrgent || state.waiting.count >= Self.mostBytesAtOnce)
      if needsHaste { state.isUrgent = true }
      defer { state.isStarted = true }
      return (isFirst, needsHaste, !state.isStarted)
    }
    if needsThread { queue.async { [self] in run() } }
    if isFirst {
      whenWaiting(true)
      news.signal()
    }
    if needsHaste { haste.signal() }
  }

  /// Returns when all lines are written, or after `seconds`.
  func flush(within seconds: Double) {
    let deadline = clock.instant(after: seconds)
    let needsHaste = state.withLock { state in
      state.flushing += 1
      defer { state.isUrgent = true }
      return !state.isUrgent
    }
    if needsHaste { haste.signal() }
    while state.withLock({ !$0.waiting.isEmpty || $0.isWriting }) {
      guard clock.wait(for: calm, seconds: -clock.seconds(since: deadline)) else { break }
    }
    state.withLock { $0.flushing -= 1 }
  }

  private func run() {
    var lines: [UInt8] = []
    while true {
      news.wait()
      _ = clock.wait(for: haste, seconds: pauseSeconds)
      let dropped = state.withLock { state in
        swap(&lines, &state.waiting)
        defer { (state.dropped, state.isUrgent, state.isWriting) = (0, false, true) }
        return state.dropped
      }
      // Waits as long as the reader needs. Bytes for a broken or closed descriptor are discarded.
      writeAll(lines, to: descriptor)
      if dropped > 0 {
        writeAll(
          Array("{\"level\":\"warning\",\"message\":\"\(dropped) log lines had no room and were dropped\"}\n".utf8),
          to: descriptor)
      }
      // Keeps the memory for the next lines, unless the reader was stuck.
      lines.removeAll(keepingCapacity: lines.capacity <= 4 * Self.mostBytesAtOnce)
      let flushing = state.withLock { state in
        state.isWriting = false
        return state.flushing
      }
      whenWaiting(false)
      for _ in 0..<flushing { calm.signal() }
    }
  }
}
