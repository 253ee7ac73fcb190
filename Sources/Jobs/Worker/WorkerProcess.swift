import CLinux
import Dispatch
import Glibc
import Processing

/// How a worker's life ended.
package enum WorkerExit: Sendable, Equatable {
  /// It exited with this status.
  case status(Int32)
  /// This signal ended it.
  case signal(Int32)
  /// It could not be started.
  case notStarted(errno: Int32)
}

/// One running child: `stillwave worker`, which works on one file.
///
/// Its standard output carries `WorkerReport` lines. Its standard input is a pipe: its `WorkerRequest` is written there
/// before it starts, and the pipe stays open, so that the child ends itself if the service dies. It leads a session of
/// its own, so that a terminal's Ctrl-C reaches only the service, and runs at lower priority than the service.
///
/// Confined to the queue it is given; the handlers are called there. A thread of its own reads the output with blocking
/// calls: a dispatch source for each child would be torn down while epoll tells of its hang-up, which libdispatch on
/// Linux answers now and then with a use after free (`_dispatch_event_loop_drain`, within ten uploads).
package final class WorkerProcess: @unchecked Sendable {  // all state is touched on `queue` only
  private let queue: DispatchQueue
  private let identifier: pid_t
  private let input: Int32
  private let output: Int32
  private var isAlive = true
  private var line: [UInt8] = []
  /// What of these it lends to ffmpeg it takes back, unless it ends before.
  private let files: [String]
  private let onReport: @Sendable (WorkerReport) -> Void
  private let onExit: @Sendable (WorkerExit) -> Void

  /// Longest line a child may send.
  private static let lineLimit = 1 << 20

  /// Starts `program` on a request. `onReport` is called for every line, `onExit` once, after the last line.
  ///
  /// Takes about a millisecond, on `queue`.
  package static func start(
    program: String, _ request: WorkerRequest, queue: DispatchQueue,
    onReport: @escaping @Sendable (WorkerReport) -> Void, onExit: @escaping @Sendable (WorkerExit) -> Void
  ) -> WorkerProcess? {
    // The label is for those who look at processes.
    start(
      program: program, arguments: ["worker", request.work.name, request.folder ?? request.source],
      input: request.line(),
      files: request.lentFiles, queue: queue, onReport: onReport, onExit: onExit)
  }

  /// The same for any program.
  static func start(
    program: String, arguments: [String], input: [UInt8], files: [String], queue: DispatchQueue,
    onReport: @escaping @Sendable (WorkerReport) -> Void,
    onExit: @escaping @Sendable (WorkerExit) -> Void
  ) -> WorkerProcess? {
    dispatchPrecondition(condition: .onQueue(queue))
    switch spawn(program, arguments, input: input) {
    case .success(let child):
      let worker = WorkerProcess(child, files: files, queue: queue, onReport: onReport, onExit: onExit)
      // A serial queue of its own, so that the thread is never counted against others'.
      DispatchQueue(label: "worker output").async { worker.listen() }
      return worker
    case .failure(let failure):
      queue.async { onExit(.notStarted(errno: failure.errno)) }
      return nil
    }
  }

  private init(
    _ child: SpawnedChild, files: [String], queue: DispatchQueue, onReport: @escaping @Sendable (WorkerReport) -> Void,
    onExit: @escaping @Sendable (WorkerExit) -> Void
  ) {
    self.queue = queue
    (identifier, input, output) = (child.identifier, child.input, child.output)
    self.files = files
    self.onReport = onReport
    self.onExit = onExit
  }

  /// Ends the child, and whatever it has started, at once; `onExit` follows.
  package func kill() {
    dispatchPrecondition(condition: .onQueue(queue))
    if isAlive { _ = Glibc.kill(-identifier, SIGKILL) }
  }

  /// Reads to the end of the output, then waits for the child's. On the child's thread.
  private func listen() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(output, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      let piece = buffer.prefix(count)
      // Waits, so that a child that talks faster than it is heard is slowed down.
      queue.sync { receive(piece) }
    }
    // It is exiting, which a signal doesn't change any more; one that closed its output and goes on ends here.
    queue.sync { kill() }
    close(output)
    close(input)
    // Not reaped yet: until `isAlive` says so, the number must not become another process's.
    var information = unsafe siginfo_t()
    while unsafe waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
    queue.async { [self] in reap() }
  }

  private func receive(_ piece: ArraySlice<UInt8>) {
    line += piece
    while let end = line.firstIndex(of: UInt8(ascii: "\n")) {
      if let report = WorkerReport(line: line[..<end]) { onReport(report) }
      line.removeSubrange(...end)
    }
    if line.count > Self.lineLimit {
      line = []
      kill()
    }
  }

  /// The child has ended; asking how takes no time.
  private func reap() {
    isAlive = false
    var status: Int32 = 0
    while unsafe waitpid(identifier, &status, 0) < 0 && errno == EINTR {}
    // Its ffmpeg, which was killed with it, may hold them for a moment yet.
    if status != 0 { LentFiles.takeBack(files) }
    onExit(status & 0x7F == 0 ? .status(status >> 8 & 0xFF) : .signal(status & 0x7F))
  }
}

private struct SpawnedChild {
  let identifier: pid_t
  let input: Int32
  let output: Int32
}

private struct SpawnFailure: Error {
  let errno: Int32
}

/// `posix_spawn` with pipes for standard input and output. Every other descriptor of ours is close-on-exec. `input` is
/// what standard input begins with; it fails with EAGAIN if the pipe can't hold it.
private func spawn(_ program: String, _ arguments: [String], input: [UInt8]) -> Result<SpawnedChild, SpawnFailure> {
  var inputPipe: [Int32] = [-1, -1]
  var outputPipe: [Int32] = [-1, -1]
  guard unsafe pipe2(&inputPipe, O_CLOEXEC) == 0 else { return .failure(SpawnFailure(errno: errno)) }
  guard unsafe pipe2(&outputPipe, O_CLOEXEC) == 0 else {
    let failure = SpawnFailure(errno: errno)
    inputPipe.forEach { close($0) }
    return .failure(failure)
  }
  // Before there is a reader that could go away. The pipe is empty, so that all is written or this fails.
  _ = fcntl(inputPipe[1], F_SETFL, O_NONBLOCK)
  let written = unsafe input.withUnsafeBytes { unsafe write(inputPipe[1], $0.baseAddress, $0.count) }
  guard written == input.count else {
    let failure = SpawnFailure(errno: written < 0 ? errno : EAGAIN)
    (inputPipe + outputPipe).forEach { close($0) }
    return .failure(failure)
  }
  var actions = unsafe posix_spawn_file_actions_t()
  unsafe posix_spawn_file_actions_init(&actions)
  defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
  unsafe posix_spawn_file_actions_adddup2(&actions, inputPipe[0], STDIN_FILENO)
  unsafe posix_spawn_file_actions_adddup2(&actions, outputPipe[1], STDOUT_FILENO)
  // Decoders complain there. Into a log file they could not: no worker may write to a file that is longer than its
  // result.
  unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)

  var attributes = posix_spawnattr_t()
  unsafe posix_spawnattr_init(&attributes)
  defer { unsafe _ = posix_spawnattr_destroy(&attributes) }
  unsafe stillwave_start_afresh(&attributes, Int16(POSIX_SPAWN_SETSID))

  let words = unsafe (["stillwave"] + arguments).map { unsafe strdup($0) }
  defer { unsafe words.forEach { unsafe free($0) } }
  var identifier: pid_t = 0
  let environment = unsafe stillwave_worker_environment()
  defer { unsafe free(environment) }
  let failure = unsafe posix_spawn(&identifier, program, &actions, &attributes, words + [nil], environment)
  close(inputPipe[0])
  close(outputPipe[1])
  guard failure == 0 else {
    close(inputPipe[1])
    close(outputPipe[0])
    return .failure(SpawnFailure(errno: failure))
  }
  // Answers come before jobs: a worker gets the processor when no request wants it.
  _ = stillwave_lower_priority(identifier, 10)
  return .success(SpawnedChild(identifier: identifier, input: inputPipe[1], output: outputPipe[0]))
}
