import CLinux
import Denoise
import Dispatch
import Glibc
import Synchronization
import Terms
import Waveform
import Workers

/// A running child process, `stillwave reader`, which has one recording open and answers requests about its samples
/// (see `ReaderRequest`). Fenced in, it can open nothing else. Used by one thread at a time.
package final class SampleReader: Sendable {
  /// How long an answer may take.
  struct Patience: Sendable {
    /// The reader's processor time for samples, and the time by the clock for any answer.
    var processorSeconds = 20.0, clockSeconds = 60.0
    /// How long a reader may use no processor time: longer than a failover of network storage. A process that is idle
    /// for longer was stopped.
    var idleSeconds = 30.0
    /// How often a reader that doesn't answer is looked at.
    var lookSeconds = 1.0
    var clock = Clock.system
  }

  let identifier: pid_t
  private let socket: Int32
  private let template: WorkerTemplate?
  private let patience: Patience
  private let watch: WorkerWatch
  /// The limit for which the watch has ended it.
  private let excess = Mutex<WorkerExcess?>(nil)
  /// The file that it has open.
  let file: OpenFile
  let fence: WorkerFence
  /// Whether it has reported that its memory ran out, after which it crashes.
  private let isOutOfMemory = Atomic(false)
  /// Whether the service has ended it.
  private let isUnwanted = Atomic(false)

  /// The signals by which it may end without being counted as crashed.
  var expectedSignals: Set<Int32> {
    if isOutOfMemory.load(ordering: .relaxed) { return SpawnedChild.crashesOutOfMemory.union([SIGKILL]) }
    return isUnwanted.load(ordering: .relaxed) ? [SIGKILL] : []
  }

  /// Starts a reader of a file, as a copy of `template` if there is one that is ready. Takes about a millisecond.
  /// `label`: what it was started for, for `ps`.
  static func start(
    _ settings: WorkerSettings, _ file: OpenFile, _ fence: WorkerFence, label: String, _ patience: Patience,
    _ watch: WorkerWatch
  ) throws(ReaderFailure) -> SampleReader {
    let opening = Array("\(fence.text) \(file.map == nil ? 0 : 1) \(settings.voice)\n".utf8)
    let child = SpawnedChild.startReader(
      settings.program, ["reader", label, file.path], opening: opening, file.descriptor, file.map ?? file.descriptor,
      template: settings.template)
    switch child {
    case .success(let child): return SampleReader(child, file, fence, settings.template, patience, watch)
    case .failure(let failure): throw .died("it could not be started (errno \(failure.errno))")
    }
  }

  private init(
    _ child: SpawnedChild, _ file: OpenFile, _ fence: WorkerFence, _ template: WorkerTemplate?, _ patience: Patience,
    _ watch: WorkerWatch
  ) {
    self.watch = watch
    (identifier, socket, self.template) = (child.identifier, child.input, template)
    (self.file, self.fence, self.patience) = (file, fence, patience)
    let microseconds = Int(patience.lookSeconds * 1e6)
    var time = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      unsafe setsockopt(socket, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
    }
    watch.add(identifier, folder: nil, .reader) { [weak self] excess in
      guard let self else { return }
      self.excess.withLock { $0 = excess }
      end()
    }
  }

  /// An idle reader has nothing to lose.
  deinit {
    watch.remove(identifier)
    end()
    close(socket)
    let (identifier, template, expected) = (identifier, template, expectedSignals)
    // It takes a moment to end, and longer on a hanging disk. So each waits on a thread of its own.
    DispatchQueue(label: "reaper").async {
      SpawnedChild.reap(identifier, workName: "reader", template, expecting: expected)
    }
  }

  /// Ends the process, and a request for it. Thread-safe.
  func end() {
    if peeked != 0 { isUnwanted.store(true, ordering: .relaxed) }
    kill(-identifier, SIGKILL)
    shutdown(socket, Int32(SHUT_RDWR))
  }

  /// Whether the process ended while it was idle, for example because the system ran out of memory.
  var hasEnded: Bool { peeked >= 0 }

  /// How many bytes could be received, of one: 0 if it has closed the socket; negative if it's silent.
  private var peeked: Int {
    var byte: UInt8 = 0
    return unsafe recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT))
  }

  /// Returns the pixels of a window that needs samples.
  package func slice(_ window: WaveformWindow) throws(ReaderFailure) -> WaveformSlice {
    let bytes = try ask(.pixels(window), atMost: WaveformSlice.byteCount(of: window))
    guard let slice = WaveformSlice(window, bytes: bytes) else { throw .nonsense }
    return slice
  }

  /// Returns the pixels of a window of any scale, of a recording of which the file has only a part, beginning with
  /// frame `start`.
  package func slice(_ window: WaveformWindow, ofFileFrom start: Int64) throws(ReaderFailure) -> WaveformSlice {
    let bytes = try ask(.partPixels(window, from: start), atMost: WaveformSlice.byteCount(of: window))
    guard let slice = WaveformSlice(window, bytes: bytes) else { throw .nonsense }
    return slice
  }

  /// Returns the file's samples as they are stored; nil if they are encoded.
  package func plainSamples() throws(ReaderFailure) -> PlainSamples? {
    let bytes = try ask(.plainLayout, atMost: 10)
    guard !bytes.isEmpty else { return nil }
    guard bytes.count == 10, (2...4).contains(bytes[8]) else { throw .nonsense }
    let start = Int64(little: bytes[..<8])
    guard (0...file.state.bytes).contains(start) else { throw .nonsense }
    return PlainSamples(of: file, from: start, sampleBytes: Int(bytes[8]), isBigEndian: bytes[9] == 1)
  }

  /// Returns the values of a spectrogram's tile.
  package func values(of tile: SpectrogramTile) throws(ReaderFailure) -> [UInt8] {
    let bytes = try ask(.tile(tile), atMost: tile.byteCount)
    guard bytes.count == tile.byteCount else { throw .nonsense }
    return bytes
  }

  /// Returns the length in bytes of the WAV file with these frames.
  package func partLength(_ frames: Range<Int64>) throws(ReaderFailure) -> Int64 {
    let bytes = try ask(.partLength(frames), atMost: 8)
    let length = Int64(little: bytes[...])
    // At most 1,024 channels of eight bytes, after the header.
    guard bytes.count == 8, length > 0, length <= 4096 + Int64(frames.count) << 13 else { throw .nonsense }
    return length
  }

  /// Returns bytes of that file from `place` on, at least one.
  package func part(_ frames: Range<Int64>, from place: Int64, limit: Int64) throws(ReaderFailure) -> [UInt8] {
    let bytes = try ask(.part(frames, from: place, limit: limit), atMost: Int(clamping: limit))
    guard !bytes.isEmpty else { throw .nonsense }
    return bytes
  }

  /// Does work on the recording and returns its result.
  func report(of request: WorkerRequest) throws(ReaderFailure) -> WorkerReport {
    if let (output, profile) = request.readerFiles {
      let target = try opened(output, O_RDWR | O_CREAT | O_TRUNC)
      defer { close(target) }
      let noise = if let profile { try opened(profile, O_RDONLY) } else { target }
      defer { if profile != nil { close(noise) } }
      let line = request.line()
      // If it isn't sent, there is no answer.
      _ = unsafe line.withUnsafeBytes { unsafe stillwave_send_order(socket, $0.baseAddress, $0.count, target, noise) }
    } else {
      send(request.line())
    }
    guard case .report(let report) = try answer(atMost: 1 << 20, .infinity), report.isResult(of: request.work) else {
      throw .nonsense
    }
    return report
  }

  private func opened(_ path: String, _ flags: Int32) throws(ReaderFailure) -> Int32 {
    let file = unsafe open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard file >= 0 else { throw .refused(WorkerFailure(.system(operation: "open", path: path, errno: errno))) }
    return file
  }

  /// Sends a request and returns the content of the answer. Blocks. After any error but `.refused`, the reader must not
  /// be asked again.
  private func ask(_ request: ReaderRequest, atMost limit: Int) throws(ReaderFailure) -> [UInt8] {
    send(request.bytes)
    guard case .content(let bytes) = try answer(atMost: limit, patience.processorSeconds) else { throw .nonsense }
    return bytes
  }

  /// Sends a request. If that fails, the reader may have written why.
  private func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if sent < 0 && errno == EINTR { continue }
      guard sent > 0 else { return }
      rest = rest.dropFirst(sent)
    }
  }

  private enum Answer {
    case content([UInt8])
    case report(WorkerReport)
  }

  /// Receives an answer of at most `limit` bytes. Throws `.refused` if it's a report of a failure, and `.slow` if it
  /// takes too long, or more processor time than `mostSeconds`.
  private func answer(atMost limit: Int, _ mostSeconds: Double) throws(ReaderFailure) -> Answer {
    let (start, head) = (patience.clock.now, ReaderRequest.answerHeadBytes)
    var (processorStart, last) = (nil as Double?, (used: -1.0, since: patience.clock.now))
    // Room for a failure, whose length isn't known.
    let limit = min(limit, ReaderRequest.answerLimit)
    var answer = [UInt8](repeating: 0, count: head + max(limit, 4096))
    var received = 0
    while true {
      let count = unsafe answer.withUnsafeMutableBytes { answer in
        unsafe recv(socket, answer.baseAddress.map { unsafe $0 + received }, answer.count - received, 0)
      }
      if count < 0 && errno == EINTR { continue }
      if count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) {
        let used = processorSeconds
        let before = processorStart ?? used
        processorStart = before
        guard used - before <= mostSeconds else { throw .slow }
        if used != last.used { last = (used, patience.clock.now) }
        guard patience.clock.seconds(since: last.since) <= patience.idleSeconds else { throw .slow }
      } else {
        guard count > 0 else {
          throw .died(excess.withLock { $0 }.map { "it exceeded a limit: \($0)" } ?? "it ended without an answer")
        }
        received += count
        if let whole = try whole(&answer, received, limit) { return whole }
        guard received < answer.count else { throw .nonsense }
      }
      guard patience.clock.seconds(since: start) <= patience.clockSeconds else { throw .slow }
    }
  }

  /// Returns the answer if all of its bytes have been received.
  private func whole(_ answer: inout [UInt8], _ received: Int, _ limit: Int) throws(ReaderFailure) -> Answer? {
    guard answer[0] == ReaderRequest.isAnswer else {
      guard let end = answer[..<received].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      guard let report = WorkerReport(line: answer[..<end]) else { throw .nonsense }
      guard let failure = report.failure else { return .report(report) }
      if failure.code == "memory_limit" { isOutOfMemory.store(true, ordering: .relaxed) }
      throw .refused(failure)
    }
    let head = ReaderRequest.answerHeadBytes
    guard received >= head else { return nil }
    let length = Int(UInt32(little: answer[1..<head]))
    guard length <= limit, received <= head + length else { throw .nonsense }
    guard received == head + length else { return nil }
    answer.removeSubrange(received...)
    answer.removeSubrange(..<head)
    return .content(answer)
  }

  /// The processor time of all its threads.
  private var processorSeconds: Double {
    var (clock, time) = (clockid_t(), timespec())
    guard unsafe clock_getcpuclockid(identifier, &clock) == 0, unsafe clock_gettime(clock, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// Why a reader gave no answer.
package enum ReaderFailure: Error, Equatable {
  /// The recording's file can't be opened; its errno.
  case unopened(Int32)
  /// The reader says that it can't be done.
  case refused(WorkerFailure)
  /// It ended, couldn't be started, or answered nonsense.
  case died(String)
  /// It took too long.
  case slow

  static let nonsense = ReaderFailure.died("its answer made no sense")
}
