import CLinux
import Glibc

/// How a program is started so that it can do no harm: by this program itself, which fences itself in and then becomes
/// the other one.
public struct Fencing: Sendable, Equatable {
  /// The words that the program's own path and arguments follow.
  public var launcher: [String]

  /// Limits as `WorkerFence` writes them.
  public init(limits: String) { launcher = ["/proc/self/exe", "run-fenced", "--fence", limits, "--"] }

  /// Starts programs as they are; for tests of what they say.
  static let none = Fencing(launcher: [])

  private init(launcher: [String]) { self.launcher = launcher }
}

/// A program that runs in a fence of its own while what it writes to its standard output is read. Confined; blocks.
///
/// It has to be started before this process fences itself in, which can't start anything after. It is killed with the
/// thread that started it.
@safe
final class FencedRun {
  private let identifier: pid_t
  private var output: Int32
  /// Where its standard input is written to; -1 where that has nothing.
  private var input: Int32 = -1
  private var status: Int32?

  /// Starts `words` with nowhere to complain to, and nothing to read but what is written to it, with `takesInput`.
  init(_ words: [String], in fencing: Fencing, takesInput: Bool = false) throws(MediaError) {
    var pipe: [Int32] = [-1, -1]
    guard unsafe pipe2(&pipe, O_CLOEXEC) == 0 else { throw .system(operation: "pipe", errno: errno) }
    defer { close(pipe[1]) }
    var feed: [Int32] = [-1, -1]
    if takesInput {
      guard unsafe pipe2(&feed, O_CLOEXEC) == 0 else {
        let number = errno
        close(pipe[0])
        throw .system(operation: "pipe", errno: number)
      }
      // Of a program that ended a write tells by its error.
      _ = signal(SIGPIPE, SIG_IGN)
    }
    defer { if takesInput { close(feed[0]) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
    if takesInput {
      unsafe posix_spawn_file_actions_adddup2(&actions, feed[0], STDIN_FILENO)
    } else {
      unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    }
    unsafe posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO)
    unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe _ = posix_spawnattr_destroy(&attributes) }
    unsafe stillwave_start_afresh(&attributes, 0)

    let texts = unsafe (fencing.launcher + words).map { unsafe strdup($0) }
    defer { unsafe texts.forEach { unsafe free($0) } }
    var identifier: pid_t = 0
    let failure = unsafe posix_spawn(
      &identifier, texts[0] ?? strdup(""), &actions, &attributes, texts + [nil], stillwave_environment())
    guard failure == 0 else {
      close(pipe[0])
      if takesInput { close(feed[1]) }
      throw .system(operation: "spawn", errno: failure)
    }
    self.identifier = identifier
    output = pipe[0]
    input = feed[1]
  }

  deinit { end() }

  /// All that it writes, where that is not more than `limit` bytes.
  func text(upTo limit: Int) -> [UInt8] {
    var all: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 65_536)
    while all.count <= limit {
      let got = unsafe piece.withUnsafeMutableBytes { unsafe read(into: $0) }
      guard got > 0 else { break }
      all += piece.prefix(got)
    }
    end()
    return all
  }

  /// Reads numbers as they are in memory; how many, fewer than there is room for at the end alone.
  func read(into numbers: inout [Float]) -> Int {
    let bytes = unsafe numbers.withUnsafeMutableBytes { buffer in
      var done = 0
      while done < buffer.count {
        let got = unsafe read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]))
        guard got > 0 else { break }
        done += got
      }
      return done
    }
    return bytes / MemoryLayout<Float>.size
  }

  /// Writes numbers as they are in memory; false where nobody reads them any more.
  func write(_ numbers: Span<Float>) -> Bool {
    unsafe numbers.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
        let count = unsafe Glibc.write(input, rest.baseAddress, rest.count)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return false }
        done += count
      }
      return true
    }
  }

  /// Ends its input and waits for it; whether it ended well.
  func finishInput() -> Bool {
    if input >= 0 { close(input) }
    input = -1
    var byte: [UInt8] = [0]
    while unsafe byte.withUnsafeMutableBytes({ unsafe read(into: $0) }) > 0 {}
    return end() == 0 && status == 0
  }

  /// Ends its input and returns what it has written, 64 KB at most. Waits for its end.
  func answer() -> [UInt8] {
    if input >= 0 { close(input) }
    input = -1
    return text(upTo: 65_535)
  }

  private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let got = unsafe Glibc.read(output, buffer.baseAddress, buffer.count)
      if got < 0 && errno == EINTR { continue }
      return got
    }
  }

  /// Why it failed; nil as long as it runs, and if it didn't.
  var failure: ProgramFailure? { status.flatMap(ProgramFailure.init(waitStatus:)) }

  /// Closes the pipe, which ends a program that still writes, and waits. The signal that ended it, 0 for none.
  @discardableResult
  func end() -> Int32 {
    if let status { return status & 0x7F }
    close(output)
    if input >= 0 { close(input) }
    var found: Int32 = 0
    while unsafe waitpid(identifier, &found, 0) < 0 && errno == EINTR {}
    status = found
    return found & 0x7F
  }
}
