import ArgumentParser
import Dispatch
import FoundationEssentials
import Glibc
import Processing
import Synchronization
import Terms
import Workers

// Several files at once. Each goes to the folder OUT/ under its own name, or with the extension of --format. Names are
// settled before any work starts. A file that fails doesn't stop the others, but the exit status is then 1. A result
// appears under its name only when it is complete, so one that is there needn't be made again unless its source has
// changed.

extension DenoiseCommand {
  /// Whether a path is, or is meant to be, a folder.
  func isFolder(_ path: String) -> Bool {
    var status = stat()
    if unsafe stat(path, &status) == 0 { return status.st_mode & S_IFMT == S_IFDIR }
    return path.hasSuffix("/")
  }

  fileprivate struct Task {
    let input, output: String
    /// Whether the result is there already.
    var isDone = false
  }

  /// A line of the manifest.
  fileprivate struct Line: Encodable {
    let input, output, state: String
    var error: WorkerFailure?
  }

  func cleanAll() throws {
    let progress = options.progress
    do throws(CommandFailure) {
      if case .profile(let path) = noise.source { try Self.check(profile: path) }
      let tasks = try self.tasks()
      try Self.makeFolder(destination)
      let manifest = try self.manifest.map { (path) throws(CommandFailure) in try Self.appending(to: path) }
      defer { if let manifest { close(manifest) } }
      let open = tasks.filter { !$0.isDone }
      for task in tasks where task.isDone { Self.write(Line(task, "skipped"), to: manifest) }
      let failed = clean(open, manifest)
      TemporaryFiles.shared.removeAll()
      if progress != .json {
        let counts = [(open.count - failed, "cleaned"), (tasks.count - open.count, "skipped"), (failed, "failed")]
        StandardStreams.complain(counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", "))
      }
      guard failed > 0 else { return }
      throw CommandFailure(
        code: "files_failed", detail: "\(Words.count(failed, "file")) of \(tasks.count) could not be cleaned.")
    } catch {
      ProgressDisplay(progress).fail(error.failure)
      throw ExitCode.failure
    }
  }

  /// Cleans the files, several at a time. Returns the number of those that failed.
  private func clean(_ tasks: [Task], _ manifest: Int32?) -> Int {
    let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let lanes = min(jobs ?? cores, tasks.count)
    // If there are fewer files at a time than cores, each uses two.
    let threads = self.threads ?? (lanes < cores ? 2 : 1)
    let next = Atomic(0)
    let ended = Atomic(0)
    let failed = Atomic(0)
    let output = Mutex(ProgressDisplay(options.progress))
    DispatchQueue.concurrentPerform(iterations: lanes) { _ in
      while true {
        let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
        guard index < tasks.count else { return }
        let task = tasks[index]
        let report = cleaned(task, threads: threads)
        if report.failure != nil { failed.wrappingAdd(1, ordering: .relaxed) }
        let done = ended.wrappingAdd(1, ordering: .relaxed).newValue
        output.withLock { display in
          Self.write(Line(task, report.failure == nil ? "cleaned" : "failed", report.failure), to: manifest)
          display.finish(report, of: task.input, fraction: Double(done) / Double(tasks.count))
        }
      }
    }
    return failed.load(ordering: .relaxed)
  }

  private func cleaned(_ task: Task, threads: Int) -> WorkerReport {
    var display = ProgressDisplay(.none)
    do { return try clean(task.input, to: task.output, threads: threads, &display) } catch {
      let failure = try? ProgressDisplay.failure(error, namesPaths: false)
      return .failed(failure ?? WorkerFailure(code: "worker_failed", detail: "\(error)", retry: false))
    }
  }

  // MARK: The manifest

  private static func appending(to path: String) throws(CommandFailure) -> Int32 {
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
    guard file >= 0 else { throw CommandFailure(system: errno, on: path) }
    return file
  }

  private static func write(_ line: Line, to manifest: Int32?) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let manifest, let text = try? encoder.encode(line) else { return }
    _ = writeAll(Array(text) + [UInt8(ascii: "\n")], to: manifest)
  }

  // MARK: Names

  /// Returns what to do. Throws if two results would have the same name, or one would replace a file.
  private func tasks() throws(CommandFailure) -> [Task] {
    var tasks: [Task] = []
    var taken: Set<String> = []
    var sources: [String] = []
    for input in inputs + (readsNames ? Self.namesFromInput() : []) { sources += try Self.files(at: input) }
    for input in sources {
      let output = destination + (destination.hasSuffix("/") ? "" : "/") + outputName(of: input)
      guard taken.insert(output).inserted else {
        throw CommandFailure(
          code: "name_taken", detail: "\(input): another file would also become \(output). Clean them one by one.")
      }
      var (old, new) = (stat(), stat())
      if unsafe stat(output, &new) == 0 {
        if unsafe stat(input, &old) == 0, old.st_ino == new.st_ino, old.st_dev == new.st_dev {
          throw CommandFailure(
            code: "name_taken", detail: "\(input) would be replaced by its result. Choose another folder for -o.")
        }
        // A file of the same moment may have been changed since.
        let isDone = (new.st_mtim.tv_sec, new.st_mtim.tv_nsec) > (old.st_mtim.tv_sec, old.st_mtim.tv_nsec)
        guard force || isDone else {
          throw CommandFailure(
            code: "name_taken", detail: "\(output) exists already and is older than its source; --force replaces it.")
        }
        tasks.append(Task(input: input, output: output, isDone: !force))
      } else {
        tasks.append(Task(input: input, output: output))
      }
    }
    guard !tasks.isEmpty else {
      throw CommandFailure(code: "empty_input", detail: "There are no files in \(inputs.joined(separator: ", ")).")
    }
    return tasks
  }

  private func outputName(of input: String) -> String {
    let name = input.split(separator: "/").last.map(String.init) ?? input
    guard let format, format != .same else { return name }
    let stem = name.lastIndex(of: ".").map { $0 == name.startIndex ? name[...] : name[..<$0] } ?? name[...]
    return "\(stem).\(format.rawValue)"
  }

  /// Returns the names in standard input, each ended by a zero byte.
  private static func namesFromInput() -> [String] {
    var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(STDIN_FILENO, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) } }
      bytes += buffer.prefix(count)
    }
  }

  /// Returns a file, or the files in a folder, sorted, without hidden ones and folders.
  private static func files(at path: String) throws(CommandFailure) -> [String] {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { throw CommandFailure(system: errno, on: path) }
    guard status.st_mode & S_IFMT == S_IFDIR else { return [path] }
    let names: [String]
    do { names = try FileManager.default.contentsOfDirectory(atPath: path) } catch {
      throw CommandFailure(system: EACCES, on: path)
    }
    let paths = names.filter { !$0.hasPrefix(".") }.sorted().map { path + (path.hasSuffix("/") ? "" : "/") + $0 }
    return paths.filter { unsafe stat($0, &status) == 0 && status.st_mode & S_IFMT == S_IFREG }
  }

  private static func makeFolder(_ path: String) throws(CommandFailure) {
    guard unsafe mkdir(path, 0o777) != 0, errno != EEXIST else { return }
    throw CommandFailure(system: errno, on: path)
  }

  private static func check(profile path: String) throws(CommandFailure) {
    do { _ = try NoiseProfileFile(path: path) } catch {
      let failure = WorkerFailure(ProcessingError.profile(path: path, error), namesPaths: true)
      throw CommandFailure(code: failure.code, detail: failure.detail)
    }
  }
}

extension DenoiseCommand.Line {
  fileprivate init(_ task: DenoiseCommand.Task, _ state: String, _ error: WorkerFailure? = nil) {
    self.init(input: task.input, output: task.output, state: state, error: error)
  }
}

extension ProgressDisplay {
  /// Shows the result of one of several files, and how much of the work is done.
  fileprivate mutating func finish(_ report: WorkerReport, of input: String, fraction: Double) {
    if isJSON {
      StandardStreams.write(
        Array("{\"file\":".utf8) + quoted(input) + [UInt8(ascii: ",")] + report.line().dropFirst())
    }
    show(WorkerProgress(fraction: fraction, readyFrames: 0, totalFrames: nil, estimatedFrames: nil))
    guard !isJSON else { return }
    if fraction == 1 { endLine() }
    switch report {
    case .failed(let failure): StandardStreams.complain("\(input): \(failure.detail)")
    case .denoised(let outcome):
      for warning in outcome.warnings where warning.isAboutWork {
        StandardStreams.complain("\(input): warning: \(warning.detail)")
      }
    default: break
    }
  }

  private func quoted(_ text: String) -> [UInt8] { (try? JSONEncoder().encode(text)).map(Array.init) ?? [] }
}
