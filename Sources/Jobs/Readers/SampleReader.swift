import CLinux
import Dispatch
import Glibc
import Processing
import Synchronization
import Terms
import Waveform

/// A running child process, `stillwave reader`, which has one recording open and answers requests about its samples
/// (see `ReaderRequest`). Fenced in, it can open nothing else. Used by one thread at a time.
package final class SampleReader: Sendable {
  let identifier: pid_t
  private let socket: Int32
  private let template: WorkerTemplate?
  private let timeoutSeconds: Double
  private let watch: WorkerWatch
  /// The limit for which the watch has ended it.
  private let excess = Mutex<WorkerExcess?>(nil)
  /// The file that it has open.
  let file: OpenFile
  /// Whether it has reported that its memory ran out, after which it crashes.
  private let isOutOfMemory = Atomic(false)

  /// The signals by which it may end without being counted as crashed.
  var expectedSignals: Set<Int32> {
    isOutOfMemory.load(ordering: .relaxed) ? SpawnedChild.crashesOutOfMemory.union([SIGKILL]) : [SIGKILL]
  }

  /// Starts a reader of a file, as a copy of `template` if there is one that is ready. Takes about a millisecond.
  static func start(
    _ settings: WorkerSettings, _ file: OpenFile, label: String, timeoutSeconds: Double, watch: WorkerWatch
  ) throws(ReaderFailure) -> SampleReader {
    let fence = WorkerFence.reader(settings)
    let opening = Array("\(fence.text) \(file.map == nil ? 0 : 1)".utf8)
    let child = SpawnedChild.startReader(
      settings.program, ["reader", label], opening: opening, file.descriptor, file.map ?? file.descriptor,
      template: settings.template)
    switch child {
    case .success(let child): return SampleReader(child, file, settings.template, timeoutSeconds, watch)
    case .failure(let failure): throw .died("it could not be started (errno \(failure.errno))")
    }
  }

  private init(
    _ child: SpawnedChild, _ file: OpenFile, _ template: WorkerTemplate?, _ timeoutSeconds: Double,
    _ watch: WorkerWatch
  ) {
    (identifier, socket, self.template, self.file) = (child.identifier, child.input, template, file)
    (self.timeoutSeconds, self.watch) = (timeoutSeconds, watch)
    let microseconds = Int(min(timeoutSeconds, 1e9) * 1e6)
    var patience = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      unsafe setsockopt(socket, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
    }
    watch.add(identifier, folder: nil, .reader) { [weak self] in self?.end(for: $0) }
  }

  private func end(for excess: WorkerExcess) {
    self.excess.withLock { $0 = excess }
    kill(-identifier, SIGKILL)
  }

  /// Ends the process. An idle one has nothing to lose.
  deinit {
    watch.remove(identifier)
    kill(-identifier, SIGKILL)
    close(socket)
    let (identifier, template, expected) = (identifier, template, expectedSignals)
    // It takes a moment to end, and longer on a hanging disk. So each waits on a thread of its own.
    DispatchQueue(label: "reaper").async {
      SpawnedChild.reap(identifier, workName: "reader", template, expecting: expected)
    }
  }

  /// Returns the pixels of a window that needs samples.
  package func slice(_ window: WaveformWindow) throws(ReaderFailure) -> WaveformSlice {
    let bytes = try ask(.pixels(window), atMost: WaveformSlice.byteCount(of: window))
    guard let slice = WaveformSlice(window, bytes: bytes) else { throw .died("its answer made no sense") }
    return slice
  }

  /// Returns the length in bytes of the WAV file with these frames.
  package func partLength(_ frames: Range<Int64>) throws(ReaderFailure) -> Int64 {
    let bytes = try ask(.partLength(frames), atMost: 8)
    let length = Int64(little: bytes[...])
    guard bytes.count == 8, length > 0 else { throw .died("its answer made no sense") }
    return length
  }

  /// Returns bytes of that file from `place` on, at least one.
  package func part(_ frames: Range<Int64>, from place: Int64, limit: Int64) throws(ReaderFailure) -> [UInt8] {
    let bytes = try ask(.part(frames, from: place, limit: limit), atMost: Int(clamping: limit))
    guard !bytes.isEmpty else { throw .died("its answer made no sense") }
    return bytes
  }

  /// Sends a request and returns the content of the answer. Blocks. After any error but `.refused`, the reader must not
  /// be asked again.
  private func ask(_ request: ReaderRequest, atMost limit: Int) throws(ReaderFailure) -> [UInt8] {
    // The limits of the socket are the kernel's, too.
    let (clock, start) = (Clock.system, Clock.system.now)
    var rest = request.bytes[...]
    while !rest.isEmpty {
      let sent = unsafe rest.withUnsafeBytes { unsafe send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if sent < 0 && errno == EINTR { continue }
      // It may have written why it ended.
      guard sent > 0 else { break }
      rest = rest.dropFirst(sent)
    }
    let head = ReaderRequest.answerHeadBytes
    // Room for a failure, whose length isn't known.
    let limit = min(limit, ReaderRequest.answerLimit)
    var answer = [UInt8](repeating: 0, count: head + max(limit, 4096))
    var received = 0
    while true {
      let count = unsafe answer.withUnsafeMutableBytes { answer in
        unsafe recv(socket, answer.baseAddress.map { unsafe $0 + received }, answer.count - received, 0)
      }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else {
        if count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) { throw .slow }
        throw .died(excess.withLock { $0 }.map { "it exceeded a limit: \($0)" } ?? "it ended without an answer")
      }
      // The socket's time limit is that of a piece.
      guard clock.seconds(since: start) <= timeoutSeconds else { throw .slow }
      received += count
      guard answer[0] == ReaderRequest.isAnswer else {
        if let end = answer[..<received].firstIndex(of: UInt8(ascii: "\n")) {
          guard let failure = WorkerReport(line: answer[..<end])?.failure else {
            throw .died("its answer made no sense")
          }
          if failure.code == "memory_limit" { isOutOfMemory.store(true, ordering: .relaxed) }
          throw .refused(failure)
        }
        guard received < answer.count else { throw .died("its answer made no sense") }
        continue
      }
      guard received >= head else { continue }
      let length = Int(UInt32(little: answer[1..<head]))
      guard length <= limit, received <= head + length else { throw .died("its answer made no sense") }
      if received == head + length {
        answer.removeSubrange(received...)
        answer.removeSubrange(..<head)
        return answer
      }
    }
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
}
