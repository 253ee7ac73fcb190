import Dispatch
import Foundation
import Synchronization

/// A child process whose two outputs go to files, so that no pipe can fill up.
///
/// Foundation's `Process` won't do: it considers a child running as long as any of its descendants is.
final class Command: Sendable {
  struct Finished {
    let status: Int32
    let output: [UInt8]
    let errors: String

    var text: String { String(decoding: output, as: UTF8.self) }
    var lines: [String] { text.split(separator: "\n").map(String.init) }
  }

  let folder: TemporaryFolder
  let processID: pid_t
  private let words: [String]
  private let ended = DispatchSemaphore(value: 0)
  private let sent = Mutex<Set<Int32>>([])
  private static let crashes: Set<Int32> = [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV]
  private let status = Mutex<Int32?>(nil)

  /// `input` is the file or pipe that the child reads its standard input from.
  init(_ path: String, _ arguments: [String], input: String = "/dev/null") throws {
    folder = try TemporaryFolder()
    words = [path] + arguments
    processID = try Self.spawn(words, folder, input)
    DispatchQueue(label: "command").async { [self] in wait() }
  }

  /// Runs the program under test to its end.
  static func stillwave(_ arguments: String...) throws -> Finished {
    try Command(try Program.path(), arguments).finish()
  }

  private static func spawn(_ words: [String], _ folder: TemporaryFolder, _ input: String) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
    let writing = O_WRONLY | O_CREAT | O_TRUNC
    // Opening a pipe only for reading would wait for its writer.
    unsafe posix_spawn_file_actions_addopen(&actions, 0, input, input == "/dev/null" ? O_RDONLY : O_RDWR, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, folder.file("output"), writing, 0o600)
    unsafe posix_spawn_file_actions_addopen(&actions, 2, folder.file("errors"), writing, 0o600)
    var identifier: pid_t = 0
    let arguments = unsafe words.map { unsafe strdup($0) } + [nil]
    defer { unsafe arguments.forEach { unsafe free($0) } }
    let failure = unsafe posix_spawn(&identifier, words[0], &actions, nil, arguments, environ)
    guard failure == 0 else { throw ToolFailure(description: "\(words[0]) did not start: errno \(failure)") }
    return identifier
  }

  private func wait() {
    var status: Int32 = 0
    while unsafe waitpid(processID, &status, 0) < 0 && errno == EINTR {}
    let code = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
    self.status.withLock { $0 = code }
    ended.signal()
  }

  var isRunning: Bool { status.withLock { $0 == nil } }

  func signal(_ number: Int32) {
    sent.withLock { _ = $0.insert(number) }
    // Once the process has been waited for, its id may belong to another one.
    status.withLock { status in
      if status == nil { _ = kill(processID, number) }
    }
  }

  /// Waits for the end. Kills a process that hangs, and throws. Throws if the process has crashed, unless a
  /// signal of this command ended it.
  func finish() throws -> Finished {
    guard ended.wait(timeout: .now() + hung) == .success else {
      signal(SIGKILL)
      throw ToolFailure(description: "\(words) did not end")
    }
    ended.signal()
    let status = status.withLock { $0 ?? -1 }
    let errors = String(decoding: try contents(folder.file("errors")), as: UTF8.self)
    if Self.crashes.contains(status - 128), sent.withLock({ !$0.contains(status - 128) }) {
      throw ToolFailure(description: "\(words) crashed with signal \(status - 128): \(errors)")
    }
    return Finished(status: status, output: try contents(folder.file("output")), errors: errors)
  }

  /// Returns its standard output so far.
  func output() throws -> String { String(decoding: try contents(folder.file("output")), as: UTF8.self) }
}

/// Locates the program under test: `STILLWAVE_BINARY`, or the product next to the test bundle.
enum Program {
  static func path() throws -> String {
    if let path = ProcessInfo.processInfo.environment["STILLWAVE_BINARY"] { return path }
    return try path(of: "stillwave")
  }

  /// The program that tries to break out of its fence: see Tests/Fenced.
  static func fenced() throws -> String { try path(of: "Fenced") }

  /// Copies a program so that it can be run at once. Copying in this process wouldn't do: a child started meanwhile by
  /// another test would inherit the copy open for writing, and a program that is open for writing can't be run
  /// (ETXTBSY).
  static func copy(_ path: String, to copy: String) throws {
    let finished = try Command("/bin/cp", [path, copy]).finish()
    guard finished.status == 0 else { throw ToolFailure(description: "cp \(path): \(finished.errors)") }
  }

  /// Returns the path of a product next to the test bundle.
  static func path(of product: String) throws -> String {
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundlePath ?? CommandLine.arguments[0]
    let path = URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent(product).path
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw ToolFailure(description: "no program at \(path): build the product \(product)")
    }
    return path
  }
}
