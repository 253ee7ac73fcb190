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
