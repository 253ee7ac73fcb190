import Dispatch
import Glibc
import Storage
import Synchronization
import Terms
import Waveform
import Workers

/// The processes that read recordings on demand, so that the service itself opens no file that a client has sent.
///
/// Each has one recording open. A reader is kept for a few seconds after its last use, because starting one takes as
/// long as twenty short windows. While it is used, another caller of the same recording gets a reader of its own. The
/// readers that aren't used make room for others: of the client with the most readers, the one that was used longest
/// ago.
///
/// At most `limit` callers may use one at a time, of each client at most `limitPerClient`; the caller sees to that.
package final class SampleReaders: Sendable {
  /// Maximum number of readers, and how many of them one client may use at the same time.
  package static let (limit, limitPerClient) = (8, 4)
  /// Seconds that a reader is kept after its last use.
  static let idleSeconds = 5.0
  /// Seconds after its start at which a reader isn't used again, so that its processor time suffices.
  static let useSeconds = 60.0

  private struct Idle {
    let reader: SampleReader
    /// The last client that used it.
    let client: Client
    let start: Double
    var lastUse = 0.0
  }

  private struct State {
    /// Those that aren't used, the one that was used longest ago first.
    var idle: [Idle] = []
    /// The number of those that each client uses.
    var used: [Client: Int] = [:]
    var usedCount = 0
    var isClosingScheduled = false
  }

  private let settings: WorkerSettings
  private let patience: SampleReader.Patience
  private let start: Clock.Instant
  private let watch: WorkerWatch
  private let state = Mutex(State())
  private let started = Atomic<Int>(0)
  private static let closing = DispatchQueue(label: "idle readers")

  /// `times`: multiplies how long an answer may take. `clock`: what readers age by, and answers are waited for.
  package convenience init(_ settings: WorkerSettings, times: Double = 1, clock: Clock) {
    var patience = SampleReader.Patience()
    patience.processorSeconds *= times
    patience.clockSeconds *= times
    patience.clock = clock
    self.init(settings, patience)
  }

  init(_ settings: WorkerSettings, _ patience: SampleReader.Patience, watch: WorkerWatch = .shared) {
    (self.settings, self.patience, self.watch) = (settings, patience, watch)
    start = patience.clock.now
  }

  private func seconds() -> Double { patience.clock.seconds(since: start) }

  /// The number of readers now, and of all that were started.
  package var counts: (running: Int, started: Int) {
    (state.withLock { $0.idle.count + $0.usedCount }, started.load(ordering: .relaxed))
  }

  /// Returns what `body` makes of a reader of the file at `path`, whose map of its sound is beside it, if there is one.
  /// Blocks. The file must stay there until then; a file that has been replaced since the last call is opened again.
  ///
  /// Throws `.unopened` if it can't be opened, and what `body` throws. If all readers are used, throws `.slow`.
  package func read<R>(
    _ path: String, for client: Client, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    try read(path, .reader(settings), "samples", for: client, body)
  }

  /// Returns what `body` makes of a reader of an open file, which may have been deleted since. Blocks. Throws what
  /// `body` throws. If all readers are used, throws `.slow`.
  package func read<R>(
    _ file: OpenFile, for client: Client, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    try read(file.state, { () throws(ReaderFailure) in file }, .reader(settings), "samples", for: client, body)
  }

  /// Does work on a request's source, within the limits of its fence, and returns its result. Blocks. Throws like
  /// `read`, and `.died` if `call` is canceled.
  package func report(
    of request: WorkerRequest, for client: Client, _ call: ReaderCall
  ) throws(ReaderFailure) -> WorkerReport {
    let fence = request.fence ?? .reader(settings)
    return try read(request.source, fence, request.work.name, for: client) { (reader) throws(ReaderFailure) in
      try call.run(reader) { (reader) throws(ReaderFailure) in try reader.report(of: request) }
    }
  }

  private func read<R>(
    _ path: String, _ fence: WorkerFence, _ label: String, for client: Client,
    _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    guard let state = FileState(path: path) else { throw .unopened(errno) }
    return try read(
      state, { () throws(ReaderFailure) in try OpenFile(path: path) }, fence, label, for: client, body)
  }

  private func read<R>(
    _ file: FileState, _ open: () throws(ReaderFailure) -> OpenFile, _ fence: WorkerFence, _ label: String,
    for client: Client, _ body: (SampleReader) throws(ReaderFailure) -> R
  ) throws(ReaderFailure) -> R {
    let (known, start) = try take(file, fence, client)
    defer { state.withLock { Self.giveBack(&$0, client) } }
    let reader: SampleReader
    if let known, !known.hasEnded {
      reader = known
    } else {
      let file = try open()
      started.add(1, ordering: .relaxed)
      reader = try SampleReader.start(settings, file, fence, label: label, patience, watch)
    }
    func keep() { self.keep(Idle(reader: reader, client: client, start: start)) }
    do throws(ReaderFailure) {
      let result = try body(reader)
      keep()
      return result
    } catch {
      // One that has run out of memory is about to crash.
      if case .refused(let failure) = error, !failure.retry { keep() }
      throw error
    }
  }

  /// Returns a reader of the file that isn't used, if there is one with these limits, and when it was started. Another
  /// one's would make it depend on earlier requests whether there is enough memory for this one.
  private func take(
    _ file: FileState, _ fence: WorkerFence, _ client: Client
  ) throws(ReaderFailure) -> (SampleReader?, start: Double) {
    let now = seconds()
    // Ended outside of the lock.
    var ended: [SampleReader] = []
    defer { withExtendedLifetime(ended) {} }
    let taken = state.withLock { state -> (SampleReader?, Double)? in
      guard state.usedCount < Self.limit else { return nil }
      ended = Self.removeOld(&state, at: now)
      state.usedCount += 1
      state.used[client, default: 0] += 1
      let known = state.idle.lastIndex { $0.reader.file.state == file && $0.reader.fence == fence }
      if let known {
        let found = state.idle.remove(at: known)
        return (found.reader, found.start)
      }
      if state.idle.count + state.usedCount > Self.limit { ended.append(Self.removeOne(&state)) }
      return (nil, now)
    }
    guard let taken else { throw .slow }
    return taken
  }

  private static func giveBack(_ state: inout State, _ client: Client) {
    state.usedCount -= 1
    let used = state.used[client] ?? 1
    state.used[client] = used > 1 ? used - 1 : nil
  }

  private func keep(_ idle: Idle) {
    let now = seconds()
    let isFirst = state.withLock { state in
      state.idle.append(idle)
      state.idle[state.idle.count - 1].lastUse = now
      defer { state.isClosingScheduled = true }
      return !state.isClosingScheduled
    }
    if isFirst { scheduleClosing() }
  }

  private func scheduleClosing() {
    patience.clock.after(Self.idleSeconds / 2, on: Self.closing) { [weak self] in
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
    let isOld = { (entry: Idle) in now - entry.lastUse >= idleSeconds || now - entry.start >= useSeconds }
    let old = state.idle.filter(isOld)
    if !old.isEmpty { state.idle.removeAll(where: isOld) }
    return old.map(\.reader)
  }

  /// Removes an idle reader of the client that has the most readers, of all that have an idle one.
  private static func removeOne(_ state: inout State) -> SampleReader {
    var (index, most) = (0, 0)
    for (number, entry) in state.idle.enumerated() {
      let count = (state.used[entry.client] ?? 0) + state.idle.count { $0.client == entry.client }
      if count > most { (index, most) = (number, count) }
    }
    return state.idle.remove(at: index).reader
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
    let map = unsafe open(ReaderRequest.mapPath(of: path), flags)
    self.map = map < 0 ? nil : map
  }

  deinit {
    FileClosing.close(descriptor)
    if let map { FileClosing.close(map) }
  }
}

/// What tells whether a path still leads to the same file, unchanged.
struct FileState: Equatable {
  /// The device, the file's number on it, its size, and its number of links.
  private let file: SIMD4<Int>
  /// When its content and its entry changed, in seconds and nanoseconds.
  private let changed: SIMD4<Int>

  /// The length of the file.
  var bytes: Int64 { Int64(file[2]) }

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
    file = SIMD4(
      Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino), Int(status.st_size),
      Int(truncatingIfNeeded: status.st_nlink))
    changed = SIMD4(
      status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
  }
}
