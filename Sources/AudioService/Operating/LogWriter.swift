import Dispatch
import Glibc
import Synchronization

/// Writes log lines on a thread of its own, so that a slow or stuck reader of the log blocks nothing else.
///
/// The queue is bounded: when it's full, lines are dropped, and the next line written says how many.
final class LogWriter: Sendable {
  typealias Line = @Sendable () -> [UInt8]

  /// The process's standard error.
  static let standardError = LogWriter(descriptor: STDERR_FILENO)

  private struct State {
    var waiting: [Line] = []
    var dropped = 0
    var isWriting = false
    var isStarted = false
  }

  private let descriptor: Int32
  private let limit: Int
  private let state = Mutex(State())
  /// Runs one endless block, so in effect it's a thread.
  private let queue = DispatchQueue(label: "log")
  private let news = DispatchSemaphore(value: 0)
  private let calm = DispatchSemaphore(value: 0)

  init(descriptor: Int32, limit: Int = 10_000) {
    self.descriptor = descriptor
    self.limit = limit
  }

  /// Queues a line to be built and written soon. Never blocks.
  func write(_ line: @escaping Line) {
    let isFirst = state.withLock { state in
      if state.waiting.count < limit { state.waiting.append(line) } else { state.dropped += 1 }
      defer { state.isStarted = true }
      return !state.isStarted
    }
    if isFirst { queue.async { [self] in run() } }
    news.signal()
  }

  /// Returns when all lines are written, or after `seconds`.
  func flush(within seconds: Double) {
    let deadline = DispatchTime.now() + seconds
    while state.withLock({ !$0.waiting.isEmpty || $0.isWriting }) {
      guard calm.wait(timeout: deadline) == .success else { return }
    }
  }

  private func run() {
    while true {
      news.wait()
      let (lines, dropped) = state.withLock { state in
        defer { (state.waiting, state.dropped, state.isWriting) = ([], 0, true) }
        return (state.waiting, state.dropped)
      }
      for line in lines { writeAll(line()) }
      if dropped > 0 {
        writeAll(
          Array("{\"level\":\"warning\",\"message\":\"\(dropped) log lines had no room and were dropped\"}\n".utf8))
      }
      state.withLock { $0.isWriting = false }
      calm.signal()
    }
  }

  /// Waits as long as the reader needs. Bytes for a broken or closed descriptor are discarded.
  private func writeAll(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&waiting, 1, -1)
        continue
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }
}
