import Dispatch
import Glibc
import Synchronization

/// A program run to its end, with the kernel's figures about it.
struct Child {
  /// Seconds of elapsed time and of processor time in all threads.
  let (wall, work): (Double, Double)
  /// Peak memory in kilobytes, including file-backed memory.
  let peakResident: Int

  /// Runs a command that reads `input` and writes `output`.
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

  /// Runs something twice at the same moment, and returns the seconds until both ended, divided by two.
  ///
  /// The share of the time of one run that this takes is what two cores can do at best with that work: 0.5 if they
  /// share nothing, more if they share a clock's budget, caches, memory or a disk.
  static func halfOfTwo(_ run: @escaping @Sendable (Int) throws -> Child) throws -> Double {
    let ended = Mutex<[Result<Child, any Error>]>([])
    let start = ContinuousClock.now
    DispatchQueue.concurrentPerform(iterations: 2) { number in
      let result = Result { try run(number) }
      ended.withLock { $0.append(result) }
    }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    for result in ended.withLock({ $0 }) { _ = try result.get() }
    return seconds / 2
  }

  /// Processor seconds used by this process.
  static var ownWork: Double {
    var usage = rusage()
    _ = unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

  /// Returns the path of a program; nil if it isn't installed.
  static func find(_ name: String) -> String? {
    let folders = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? "/usr/bin"
    return folders.split(separator: ":").map { "\($0)/\(name)" }.first { unsafe access($0, X_OK) == 0 }
  }
}
