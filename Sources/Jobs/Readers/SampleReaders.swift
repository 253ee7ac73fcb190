import Dispatch
import Glibc
import Processing
import Storage
import Synchronization
import Terms
import Waveform

/// The processes that read recordings on demand, so that the service itself opens no file that a client has sent.
///
/// Each has one recording open. A reader is kept for a few seconds after its last use, because starting one takes as
/// long as twenty short windows. While it is used, another caller of the same recording gets a reader of its own. The
/// readers that aren't used make room for others, the one that was used longest ago first.
///
/// At most `limit` callers may use one at a time, of each client at most `limitPerClient`; the caller sees to that.
package final class SampleReaders: Sendable {
  /// Maximum number of readers, and how many of them one client may use at the same time.
  package static let (limit, limitPerClient) = (8, 4)
  /// Seconds that an answer may take.
  package static let patienceSeconds = 20.0
  /// Seconds that a reader is kept after its last use.
  static let idleSeconds = 5.0
  /// Seconds after its start at which a reader isn't used again, so that its processor time suffices.
  static let useSeconds = 60.0

  private struct State {
    /// Those that aren't used, the one that was used longest ago first.
    var idle: [(reader: SampleReader, start: Double, lastUse: Double)] = []
    var usedCount = 0
    var isClosingScheduled = false
  }

  private let settings: WorkerSettings
  private let clock: Clock
  private let start: Clock.Instant
  private let timeoutSeconds: Double
  private let watch: WorkerWatch
  private let state = Mutex(State())
  private let started = Atomic<Int>(0)
  private static let closing = DispatchQueue(label: "idle readers")

  /// - Parameters:
  ///   - timeoutSeconds: how long an answer may take.
  ///   - clock: what readers age by.
  package convenience init(_ settings: WorkerSettings, timeoutSeconds: Double = 20, clock: Clock) {
    self.init(settings, timeoutSeconds: timeoutSeconds, watch: .shared, clock: clock)
  }

  init(_ settings: WorkerSettings, timeoutSeconds: Double, watch: WorkerWatch, clock: Clock) {
    (self.settings, self.timeoutSeconds, self.watch) = (settings, timeoutSeconds, watch)
    (self.clock, start) = (clock, clock.now)
  }

  private func seconds() -> Double { clock.seconds(since: start) }

  /// The number of readers now, and of all that were started.
  package var counts: (running: Int, started: Int) {
    (state.withLock { $0.idle.count + $0.usedCount }, started.load(ordering: .relaxed))
  }

  /// Returns what `body` makes of a reader of the file at `path`, whose map of its sound is beside it, if there is one.
  /// Blocks. The file must stay there until then; a file that has been replaced since the last call is opened again.
  ///
  /// Throws `.unopened` if it can't be opened, and what `body` throws. If all readers are used, throws `.slow`.
  package func read<R>(
    _ path: String, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    guard let state = FileState(path: path) else { throw .unopened(errno) }
    return try read(state, { () throws(ReaderFailure) in try OpenFile(path: path) }, body)
  }

  /// Returns what `body` makes of a reader of an open file, which may have been deleted since. Blocks. Throws what
  /// `body` throws. If all readers are used, throws `.slow`.
  package func read<R>(
    _ file: OpenFile, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    try read(file.state, { () throws(ReaderFailure) in file }, body)
  }

  private func read<R>(
    _ state: FileState, _ open: () throws(ReaderFailure) -> OpenFile,
    _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    let (known, start) = try take(state)
    defer { self.state.withLock { $0.usedCount -= 1 } }
    let reader: SampleReader
    if let known {
      reader = known
    } else {
      let file = try open()
      started.add(1, ordering: .relaxed)
      reader = try SampleReader.start(settings, file, label: file.path, timeoutSeconds: timeoutSeconds, watch: watch)
    }
    do throws(ReaderFailure) {
      let result = try body(reader)
      keep(reader, start)
      return result
    } catch {
      // One that has run out of memory is about to crash.
      if case .refused(let failure) = error, !failure.retry { keep(reader, start) }
      throw error
    }
  }

  /// Returns a reader of the file that isn't used, if there is one, and when it was started.
  private func take(_ file: FileState) throws(ReaderFailure) -> (SampleReader?, start: Double) {
    let now = seconds()
    // Ended outside of the lock.
    var ended: [SampleReader] = []
    defer { withExtendedLifetime(ended) {} }
    let taken = state.withLock { state -> (SampleReader?, Double)? in
      guard state.usedCount < Self.limit else { return nil }
      ended = Self.removeOld(&state, at: now)
      state.usedCount += 1
      if let index = state.idle.lastIndex(where: { $0.reader.file.state == file }) {
        let found = state.idle.remove(at: index)
        return (found.reader, found.start)
      }
      if state.idle.count + state.usedCount > Self.limit { ended.append(state.idle.removeFirst().reader) }
      return (nil, now)
    }
    guard let taken else { throw .slow }
    return taken
  }

  private func keep(_ reader: SampleReader, _ start: Double) {
    let now = seconds()
    let isFirst = state.withLock { state in
      state.idle.append((reader, start, now))
      defer { state.isClosingScheduled = true }
      return !state.isClosingScheduled
    }
    if isFirst { scheduleClosing() }
  }

  private func scheduleClosing() {
    clock.after(Self.idleSeconds / 2, on: Self.closing) { [weak self] in
      guard let self else { return }
      closeIdle()
      let isEmpty = state.withLock { state in
        state.isClosingScheduled = !state.idle.isEmpty
        return state.idle.isEmpty
      }
      if !isEmpty { scheduleClosing() }
    }
  }

  /// Ends the readers that haven't been used for a while.
  func closeIdle() {
    let now = seconds()
    let ended = state.withLock { Self.removeOld(&$0, at: now) }
    withExtendedLifetime(ended) {}
  }

  /// Ends all readers that aren't used.
  package func closeAll() {
    let ended = state.withLock { state in
      defer { state.idle = [] }
      return state.idle
    }
    withExtendedLifetime(ended) {}
  }

  private static func removeOld(_ state: inout State, at now: Double) -> [SampleReader] {
    let isOld = { (entry: (reader: SampleReader, start: Double, lastUse: Double)) in
      now - entry.lastUse >= idleSeconds || now - entry.start >= useSeconds
    }
    let old = state.idle.filter(isOld)
    if !old.isEmpty { state.idle.removeAll(where: isOld) }
    return old.map(\.reader)
  }
}

/// A recording's file and its sound map, opened for a reader.
package final class OpenFile: Sendable {
  /// The path that it was opened at.
  let path: String
  let descriptor: Int32
  /// nil if there is none.
  let map: Int32?
  let state: FileState

  /// Opens the file at `path` and the map beside it. Throws `.unopened` if the file can't be opened.
  package init(path: String) throws(ReaderFailure) {
    self.path = path
    let flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    descriptor = unsafe open(path, flags)
    guard descriptor >= 0 else { throw .unopened(errno) }
    guard let state = FileState(descriptor: descriptor) else {
      let number = errno
      close(descriptor)
      throw .unopened(number)
    }
    self.state = state
    let map = unsafe open(SampleWindow.mapPath(of: path), flags)
    self.map = map < 0 ? nil : map
  }

  deinit {
    close(descriptor)
    if let map { close(map) }
  }
}

/// What tells whether a path still leads to the same file, unchanged.
struct FileState: Equatable {
  private let device: UInt
  private let number: UInt
  private let size: Int
  private let changed: [Int]

  /// nil, with errno, if there is no file.
  init?(path: String) {
    var status = Glibc.stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    self.init(status)
  }

  init?(descriptor: Int32) {
    var status = Glibc.stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return nil }
    self.init(status)
  }

  private init(_ status: Glibc.stat) {
    (device, number, size) = (UInt(status.st_dev), UInt(status.st_ino), Int(status.st_size))
    changed = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
  }
}
