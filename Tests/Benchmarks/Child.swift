import Glibc

/// A program run to its end, and what the kernel says of it.
struct Child {
  /// Seconds, by the clock and of all its threads' work.
  let (wall, work): (Double, Double)
  /// Kilobytes of memory at the most, with what files back.
  let peakResident: Int

  /// Runs a command, its input read from `input` and its output written to `output`.
  init(_ command: [String], input: String = "/dev/null", output: String = "/dev/null") throws {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    let words = unsafe command.map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    let start = ContinuousClock.now
    var identifier: pid_t = 0
    guard unsafe posix_spawnp(&identifier, command[0], &actions, nil, words, environ) == 0 else {
      throw BenchmarkFailure(what: "\(command[0]) did not start")
    }
    var (status, usage): (Int32, rusage) = (0, rusage())
    while unsafe wait4(identifier, &status, 0, &usage) < 0 && errno == EINTR {}
    guard status == 0 else { throw BenchmarkFailure(what: "\(command) failed") }
    wall = (ContinuousClock.now - start) / .seconds(1)
    work = Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime)
    peakResident = usage.ru_maxrss
  }

  /// Seconds that this process has worked.
  static var ownWork: Double {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

  /// Where a program is that may not be installed.
  static func find(_ name: String) -> String? {
    let folders = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? "/usr/bin"
    return folders.split(separator: ":").map { "\($0)/\(name)" }.first { unsafe access($0, X_OK) == 0 }
  }
}
