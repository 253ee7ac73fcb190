import CLinux
import Glibc
import Terms

/// How to start a program so that it can do no harm: this program starts itself, fences itself in, and then becomes the
/// other program.
package struct Fencing: Sendable, Equatable {
  /// The descriptor of the input file in the program.
  package static let inputDescriptor: Int32 = 3
  /// The descriptor of the output file in the program.
  package static let outputDescriptor: Int32 = 4

  /// The launcher's command line; empty if programs are started directly.
  private let launcher: [String]
  /// The processor time that the program may use, in seconds; nil for no limit.
  let processorSeconds: Int?

  /// Creates a fencing. `limits` are in the format of `WorkerFence`. With `dropsRoot`, root starts the program as
  /// another user.
  package init(limits: String, dropsRoot: Bool) {
    launcher = ["/proc/self/exe", "run-fenced", "--fence", limits] + (dropsRoot ? ["--drop-root"] : [])
    processorSeconds = limits.split(separator: ",").dropFirst().first.flatMap { Int($0) }
  }

  /// Starts programs directly; for tests of their output.
  static let none = Fencing(launcher: [])

  private init(launcher: [String]) { (self.launcher, processorSeconds) = (launcher, nil) }

  /// Starts programs that limit themselves.
  init(processorSeconds: Int) { (launcher, self.processorSeconds) = ([], processorSeconds) }

  /// Returns the complete command line that starts `words`, a path and its arguments.
  func starting(_ words: [String], reads: Bool, writes: Bool, appends: Bool = false) -> [String] {
    guard !launcher.isEmpty else { return words }
    return launcher + ["--parent", "\(getpid())"] + (reads ? ["--reads"] : []) + (writes ? ["--writes"] : [])
      + (appends ? ["--appends"] : []) + ["--"] + words
  }
}

/// A program that runs in its own fence while its standard output is read. Blocks. Use it from one thread at a time.
///
/// The only files it can access are its input and output, as open descriptors; their folders are closed to it. Start it
/// before this process fences itself in, because afterwards no process can be started. It is killed when the thread
/// that started it ends.
@safe
final class FencedRun {
  /// The names of the input and output file in the program. The program reopens them, because only then can it seek.
  static let inputName = "file:/proc/self/fd/\(Fencing.inputDescriptor)"
  static let outputName = "file:/proc/self/fd/\(Fencing.outputDescriptor)"
  /// The output file as an open descriptor, which the program writes from its first byte to its last.
  static let sequentialOutputName = "pipe:\(Fencing.outputDescriptor)"

  private let identifier: pid_t
  private var output: Int32
  /// The write end of the program's standard input, or -1 if it has none.
  private var input: Int32 = -1
  private var status: Int32?
  /// Whether `stop` killed it.
  private var wasStopped = false
  /// The last kilobytes that `closesOutput` has read.
  private var reports: [UInt8] = []
  private let files: [OpenFile]
  /// The program whose output this one reads.
  private let feeder: FencedRun?
  private let processorSeconds: Int?

  /// Starts `words` with stderr on /dev/null. The program reads the file `source` and writes the file `output`, which
  /// is created or truncated. With an `offset`, the program writes from there on to the open descriptor, without the
  /// right to open a file for writing; its standard output is for reports then. With `takesInput`, it also reads what
  /// is passed to `write`; with a `feeder`, what that program writes, which nothing else may have read.
  ///
  /// Throws `.system` if a file can't be opened or the program can't be started.
  init(
    _ words: [String], reading source: String? = nil, writing output: String? = nil, startingAt offset: Int? = nil,
    in fencing: Fencing, takesInput: Bool = false, from feeder: FencedRun? = nil
  ) throws(MediaError) {
    var files: [OpenFile] = []
    if let source { files.append(try OpenFile(source, O_RDONLY, as: Fencing.inputDescriptor)) }
    if let output {
      let file = try OpenFile(output, O_RDWR | O_CREAT | O_TRUNC, as: Fencing.outputDescriptor)
      guard lseek(file.descriptor, off_t(offset ?? 0), SEEK_SET) >= 0 else {
        throw .system(operation: "seek", errno: errno)
      }
      files.append(file)
    }
    self.files = files
    var pipe: [Int32] = [-1, -1]
    guard unsafe pipe2(&pipe, O_CLOEXEC) == 0 else { throw .system(operation: "pipe", errno: errno) }
    defer { close(pipe[1]) }
    // Fewer task switches. If the user's pipes use too much memory already, it stays at 64 KB.
    _ = fcntl(pipe[0], Self.setPipeSize, offset == nil ? Self.pipeBytes : Self.reportPipeBytes)
    var feed: [Int32] = [-1, -1]
    if takesInput {
      guard unsafe pipe2(&feed, O_CLOEXEC) == 0 else {
        let number = errno
        close(pipe[0])
        throw .system(operation: "pipe", errno: number)
      }
      // Makes a write to a program that has ended return EPIPE.
      _ = signal(SIGPIPE, SIG_IGN)
    }
    defer { if takesInput { close(feed[0]) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe _ = posix_spawn_file_actions_destroy(&actions) }
    if takesInput {
      unsafe posix_spawn_file_actions_adddup2(&actions, feed[0], STDIN_FILENO)
    } else if let feeder {
      unsafe posix_spawn_file_actions_adddup2(&actions, feeder.output, STDIN_FILENO)
    } else {
      unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    }
    unsafe posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO)
    unsafe posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    for file in files { unsafe posix_spawn_file_actions_adddup2(&actions, file.descriptor, file.number) }
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe _ = posix_spawnattr_destroy(&attributes) }
    unsafe stillwave_start_afresh(&attributes, 0)

    let line = fencing.starting(
      words, reads: source != nil, writes: output != nil && offset == nil, appends: output != nil && offset != nil)
    let texts = unsafe line.map { unsafe strdup($0) }
    defer { unsafe texts.forEach { unsafe free($0) } }
    var identifier: pid_t = 0
    let failure = unsafe posix_spawn(
      &identifier, texts[0] ?? strdup(""), &actions, &attributes, texts + [nil], stillwave_environment())
    guard failure == 0 else {
      close(pipe[0])
      if takesInput { close(feed[1]) }
      throw .system(operation: "spawn", errno: failure)
    }
    stillwave_may_end(identifier)
    if let feeder {
      close(feeder.output)
      feeder.output = -1
    }
    self.feeder = feeder
    self.identifier = identifier
    processorSeconds = fencing.processorSeconds
    self.output = pipe[0]
    input = feed[1]
  }

  deinit { end() }

  /// F_SETPIPE_SZ, which Glibc's module lacks.
  private static let setPipeSize: Int32 = 1031
  private static let pipeBytes: Int32 = 1 << 18
  /// The smallest size, for about eighteen of ffmpeg's reports.
  private static let reportPipeBytes: Int32 = 4096

  /// Returns everything the program writes, stopping after `limit` bytes.
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

  /// Reads numbers in their in-memory representation. Returns how many, which is less than the array's count only at
  /// the end.
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

  /// Writes numbers in their in-memory representation. Returns false if the program no longer reads them.
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

  /// Closes the program's input and waits for it. Returns whether it succeeded and its output file is complete: not
  /// empty, unless `mayBeEmpty`, and, if the program makes reports, as long as it says.
  func finishInput(orEmpty mayBeEmpty: Bool = false) -> Bool {
    if input >= 0 { close(input) }
    input = -1
    while takeReport(within: -1) != .end {}
    guard end() == 0, status == 0 else { return false }
    guard outputFile >= 0 else { return true }
    return outputSize > (mayBeEmpty ? -1 : 0) && finallyReportedBytes.map { $0 == outputSize } ?? true
  }

  /// Closes the program's input, waits for it, and returns its output, at most 64 KB.
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

  /// Why the program, or the one that feeds it, failed; nil while it runs and if it didn't fail.
  var failure: ProgramFailure? { status.flatMap(ProgramFailure.init(waitStatus:)) ?? feeder?.failure }

  /// The descriptor of the output file, which shares its position with the program. Valid as long as this object.
  var outputFile: Int32 { files.last { $0.number == Fencing.outputDescriptor }?.descriptor ?? -1 }

  /// The length of the output file in bytes, or -1 if that can't be found out.
  var outputSize: Int { Int(lseek(outputFile, 0, SEEK_END)) }

  /// Tries to write to the end of the output file, for the errno of a write that a program couldn't do. Returns nil if
  /// it works. If the file may not be as long, SIGXFSZ ends this process.
  func tryWriting() -> Int32? {
    let size = outputSize
    guard size >= 0 else { return errno }
    let zeros = [UInt8](repeating: 0, count: 65_536)
    let count = unsafe zeros.withUnsafeBytes { unsafe pwrite(outputFile, $0.baseAddress, $0.count, off_t(size)) }
    let number = errno
    if count > 0 { _ = ftruncate(outputFile, off_t(size)) }
    return count == zeros.count ? nil : count < 0 ? number : ENOSPC
  }

  /// Waits until the program closes its standard output, which it does at its end at the latest. Returns false if that
  /// takes longer, or if the program writes something there.
  func closesOutput(within milliseconds: Int32) -> Bool { takeReport(within: milliseconds) == .end }

  private enum Taken { case nothing, something, end }

  /// Reads what the program has written to standard output, waiting for it at most this many milliseconds.
  private func takeReport(within milliseconds: Int32) -> Taken {
    var watched = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&watched, 1, milliseconds) > 0 else { return .nothing }
    var piece = [UInt8](repeating: 0, count: Int(Self.reportPipeBytes))
    let got = unsafe piece.withUnsafeMutableBytes { unsafe read(into: $0) }
    guard got > 0 else { return .end }
    reports = (reports + piece.prefix(got)).suffix(8192)
    return .something
  }

  /// The arguments with which ffmpeg reports its progress for `closesOutput`: every `period` seconds, and at its end.
  static func progressWords(everySeconds period: Double) -> [String] {
    ["-stats_period", "\(period)", "-progress", "pipe:1"]
  }

  /// The number of bytes that ffmpeg has written or tried to write, according to the report that it makes at its end;
  /// nil if it hasn't made that report, or doesn't say.
  var finallyReportedBytes: Int? {
    let lines = String(decoding: reports, as: UTF8.self).split(separator: "\n")
    guard lines.last == "progress=end" else { return nil }
    return lines.last { $0.hasPrefix("total_size=") }.flatMap { Int($0.dropFirst("total_size=".count)) }
  }

  /// Kills the program unless it has closed its standard output, and waits. Returns the same as `end`.
  @discardableResult
  func stop() -> Int32 {
    if status == nil, !hasClosedOutput() {
      _ = kill(identifier, SIGKILL)
      wasStopped = true
    }
    return end()
  }

  /// Whether the program has closed its standard output, perhaps after some reports.
  private func hasClosedOutput() -> Bool {
    // A program that writes on and on hasn't.
    for _ in 0...Self.pipeBytes / Self.reportPipeBytes {
      switch takeReport(within: 0) {
      case .nothing: return false
      case .something: continue
      case .end: return true
      }
    }
    return false
  }

  /// The status with which the program exited; nil while it runs, and if a signal ended it.
  var exitStatus: Int32? { status.flatMap { $0 & 0x7F == 0 ? $0 >> 8 & 0xFF : nil } }

  /// Closes the pipe, which ends a program that is still writing, and waits. A program that doesn't end within a second
  /// is killed. Returns the signal that ended it, or 0.
  ///
  /// The signal is SIGPIPE for a program that was no longer needed, and SIGXCPU for one that ignored that signal and
  /// was killed at its limit of processor time.
  @discardableResult
  func end() -> Int32 {
    if let status { return status & 0x7F }
    if output >= 0 { close(output) }
    if input >= 0 { close(input) }
    var found: Int32 = 0
    var usage = rusage()
    let isOver = waits(for: Self.patience, &found, &usage)
    if !isOver {
      _ = kill(identifier, SIGKILL)
      while unsafe wait4(identifier, &found, 0, &usage) < 0 && errno == EINTR {}
    }
    if found & 0x7F == SIGKILL {
      if let processorSeconds, Self.seconds(usage) >= Double(processorSeconds) {
        found = SIGXCPU
      } else if !isOver || wasStopped {
        found = SIGPIPE
      }
    }
    status = found
    feeder?.end()
    for file in files { file.takeBack() }
    return found & 0x7F
  }

  /// In milliseconds.
  private static let patience = 1000

  /// Whether the program ended within this many milliseconds. Polls less and less often, because most have already
  /// ended.
  private func waits(for milliseconds: Int, _ found: inout Int32, _ usage: inout rusage) -> Bool {
    var (waited, pause) = (0, 1)
    while true {
      let ended = unsafe wait4(identifier, &found, WNOHANG, &usage)
      if ended > 0 || ended < 0 && errno != EINTR { return true }
      guard waited < milliseconds else { return false }
      usleep(UInt32(pause) * 1000)
      waited += pause
      pause = min(2 * pause, 20)
    }
  }

  private static func seconds(_ usage: rusage) -> Double {
    Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
  }
}

/// A file passed to a program. Closed with its last reference.
private final class OpenFile {
  let descriptor: Int32
  /// Its descriptor in the program.
  let number: Int32

  init(_ path: String, _ flags: Int32, as number: Int32) throws(MediaError) {
    self.number = number
    let opened = unsafe open(path, flags | O_CLOEXEC, 0o600)
    guard opened >= 0 else { throw .system(operation: "open", errno: errno) }
    // Move it above the descriptors that are assigned in the program.
    descriptor = fcntl(opened, F_DUPFD_CLOEXEC, 10)
    let number = errno
    close(opened)
    guard descriptor >= 0 else { throw .system(operation: "open", errno: number) }
  }

  /// Restores the file's permissions, in case the launcher opened it up to another user.
  func takeBack() { _ = stillwave_take_back(descriptor) }

  deinit { close(descriptor) }
}
