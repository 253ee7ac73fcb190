import CLinux
import Glibc

/// A child that has been started, with this process's ends of the pipes to it.
struct SpawnedChild {
  let identifier: pid_t
  /// Where the child's standard input comes from.
  let input: Int32
  /// Where its standard output goes.
  let output: Int32

  struct Failure: Error {
    let errno: Int32
  }

  /// Starts a program with pipes for standard input and output: a copy of `template` if there is one that is ready. All
  /// other descriptors of this process are close-on-exec. `text` is written to the standard input; fails with EAGAIN if
  /// the pipe can't hold it.
  static func start(
    _ program: String, _ arguments: [String], text: [UInt8], template: WorkerTemplate?, priority: WorkerPriority
  ) -> Result<SpawnedChild, Failure> {
    var inputPipe: [Int32] = [-1, -1]
    var outputPipe: [Int32] = [-1, -1]
    guard unsafe pipe2(&inputPipe, O_CLOEXEC) == 0 else { return .failure(Failure(errno: errno)) }
    guard unsafe pipe2(&outputPipe, O_CLOEXEC) == 0 else {
      let failure = Failure(errno: errno)
      inputPipe.forEach { close($0) }
      return .failure(failure)
    }
    // Written before a reader exists that could close the pipe. The pipe is empty, so this writes everything or fails.
    _ = fcntl(inputPipe[1], F_SETFL, O_NONBLOCK)
    let written = unsafe text.withUnsafeBytes { unsafe write(inputPipe[1], $0.baseAddress, $0.count) }
    guard written == text.count else {
      let failure = Failure(errno: written < 0 ? errno : EAGAIN)
      (inputPipe + outputPipe).forEach { close($0) }
      return .failure(failure)
    }
    let answer = template?.start(
      ["stillwave"] + arguments, niceness: priority.niceness, input: inputPipe[0], output: outputPipe[1])
    let child: Result<pid_t, Failure>? =
      switch answer {
      case .started(let identifier): .success(identifier)
      case .lost: nil
      case .notSent, nil: spawn(program, arguments, input: inputPipe[0], output: outputPipe[1])
      }
    close(inputPipe[0])
    close(outputPipe[1])
    if case .success(let identifier) = child {
      if answer != .started(identifier) { _ = stillwave_lower_priority(identifier, Int32(priority.niceness)) }
      return .success(SpawnedChild(identifier: identifier, input: inputPipe[1], output: outputPipe[0]))
    }
    close(inputPipe[1])
    close(outputPipe[0])
    if case .failure(let failure) = child { return .failure(failure) }
    // With new pipes, because a lost copy may still have these open, or have read the text.
    return start(program, arguments, text: text, template: nil, priority: priority)
  }

  /// Starts a reader like a worker, with one of a pair of sockets for both standard input and output. `opening` and the
  /// two descriptors, which stay open here, are sent to it first.
  static func startReader(
    _ program: String, _ arguments: [String], opening: [UInt8], _ file: Int32, _ map: Int32, template: WorkerTemplate?
  ) -> Result<SpawnedChild, Failure> {
    var sockets: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard unsafe socketpair(AF_UNIX, kind, 0, &sockets) == 0 else { return .failure(Failure(errno: errno)) }
    defer { close(sockets[1]) }
    let sent = unsafe opening.withUnsafeBytes {
      unsafe stillwave_send_order(sockets[0], $0.baseAddress, $0.count, file, map)
    }
    guard sent == 0 else {
      close(sockets[0])
      return .failure(Failure(errno: sent))
    }
    let priority = WorkerPriority.request
    let answer = template?.start(
      ["stillwave"] + arguments, niceness: priority.niceness, input: sockets[1], output: sockets[1])
    if case .started(let identifier) = answer {
      return .success(SpawnedChild(identifier: identifier, input: sockets[0], output: sockets[0]))
    }
    if case .lost = answer {
      // With another pair, because the lost copy may have received what was sent.
      close(sockets[0])
      return startReader(program, arguments, opening: opening, file, map, template: nil)
    }
    switch spawn(program, arguments, input: sockets[1], output: sockets[1]) {
    case .success(let identifier):
      _ = stillwave_lower_priority(identifier, Int32(priority.niceness))
      return .success(SpawnedChild(identifier: identifier, input: sockets[0], output: sockets[0]))
    case .failure(let failure):
      close(sockets[0])
      return .failure(failure)
    }
  }

  /// The signals by which a fault in the code ends a process.
  private static let crashes: Set<Int32> = [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE]

  /// The signals by which its limits of time and of a file's length end a process.
  private static let limits: Set<Int32> = [SIGXCPU, SIGXFSZ]

  /// Those by which a process ends that has no memory.
  static let crashesOutOfMemory: Set<Int32> = [SIGSEGV, SIGBUS, SIGABRT]

  /// Waits for a child that ends, notes its memory under `workName`, and returns its status as `wait4` does. A template
  /// whose copy has crashed is replaced. `expected`: the signals that aren't counted in `WorkerSignals`, besides those
  /// of limits.
  @discardableResult
  static func reap(
    _ identifier: pid_t, workName: String?, _ template: WorkerTemplate?, expecting expected: Set<Int32>
  ) -> Int32 {
    var status: Int32 = 0
    var usage = rusage()
    while unsafe wait4(identifier, &status, 0, &usage) < 0 && errno == EINTR {}
    // Linux counts it in KiB, and includes the programs that the child has started and waited for.
    if let workName { WorkerMemory.add(Double(usage.ru_maxrss) * 1024, of: workName) }
    let signal = status & 0x7F
    if crashes.contains(signal) { template?.renew() }
    if signal != 0, !limits.union(expected).contains(signal) { WorkerSignals.add(signal, workName) }
    return status
  }

  /// Starts a program in its own session, with these descriptors for standard input and output.
  static func spawn(
    _ program: String, _ arguments: [String], input: Int32, output: Int32
  ) -> Result<pid_t, Failure> {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
    unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
    // Decoders write their messages to standard error. A log file wouldn't work: a worker can't write to a file that is
    // longer than the result it may write.
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
    return failure == 0 ? .success(identifier) : .failure(Failure(errno: failure))
  }
}
