import ArgumentParser
import Dispatch
import FoundationEssentials
import Glibc
import Processing
import Synchronization
import Terms
import Workers

/// The options of commands that also work on several files.
struct FolderOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Number of files to process at a time (default: one per core).", valueName: "N"))
  var jobs: Int?

  @Flag(help: "Replace results that are in the folder OUT/ already.")
  var force = false

  @Option(
    help: ArgumentHelp(
      "Append a line of JSON for each file to this file: input, output, state and error.",
      valueName: "FILE"))
  var manifest: String?

  func validate() throws {
    guard (1...256).contains(jobs ?? 1) else { throw ValidationError("--jobs must be 1 to 256.") }
  }

  /// Throws unless the results of several files go to a folder.
  func check(_ inputs: [String], _ destination: String, readsNames: Bool = false) throws {
    guard inputs.count == 1 && !readsNames && manifest == nil || FolderWork.isFolder(destination) else {
      throw ValidationError("Several files need a folder for their results: end OUT with a slash.")
    }
    guard !FolderWork.isFolder(destination) || !inputs.contains(OutputFile.standardName) else {
      throw ValidationError("Standard input has no file name, so OUT must be a file, not a folder.")
    }
  }
}

/// Work on several files. Each has a result in one folder, under its own name or with another extension.
///
/// Names are settled before any work starts. A file that fails doesn't stop the others, but the exit status is then 1.
/// A result appears under its name only when it is complete, so one that is there needn't be made again unless its
/// source has changed.
struct FolderWork: Sendable {
  /// Files, and folders of files.
  let inputs: [String]
  /// The folder of the results.
  let folder: String
  let options: FolderOptions
  let progress: ProgressStyle
  /// The participle for messages and the manifest: “cleaned”.
  let done: String
  /// The extension of results; nil for that of their sources.
  let ending: String?
  /// Threads for each file; nil for 2 if fewer files than cores are processed at a time, otherwise 1.
  let threads: Int?
  /// Makes one result.
  let make: @Sendable (_ input: String, _ output: String, _ threads: Int, inout ProgressDisplay) throws -> WorkerReport

  fileprivate struct Task {
    let input, output: String
    /// Whether the result is there already.
    var isDone = false
    /// Whether a result is there that is older than its source.
    var isOutdated = false
  }

  /// A line of the manifest.
  fileprivate struct Line: Encodable {
    let input, output, state: String
    var error: WorkerFailure?
  }

  /// Whether a path is, or is meant to be, a folder.
  static func isFolder(_ path: String) -> Bool {
    var status = stat()
    if unsafe stat(path, &status) == 0 { return status.st_mode & S_IFMT == S_IFDIR }
    return path.hasSuffix("/")
  }

  /// Works on all files.
  func run() throws(CommandFailure) {
    let tasks = try self.tasks()
    let manifest = try prepare()
    defer { if let manifest { close(manifest) } }
    let failed = perform(tasks, manifest)
    guard failed > 0 else { return }
    throw CommandFailure(
      code: "files_failed", detail: "\(Words.count(failed, "file")) of \(tasks.count) could not be \(done).")
  }

  /// Processes files as they are added to a folder, until the process ends. Throws if the folder can't be read.
  func watch() throws(CommandFailure) {
    Interruption.watch()
    let manifest = try prepare()
    let own = options.manifest.flatMap { Version(of: $0)?.identity }
    // What was seen in the last look, what was processed, and the source of each result.
    var (before, settled, taken) = ([String: Version](), [String: Version](), [String: String]())
    while true {
      var found: [String: Version] = [:]
      for path in try Self.files(at: inputs[0]) {
        if let version = Version(of: path), version.identity != own { found[path] = version }
      }
      settled = settled.filter { found[$0.key] != nil }
      taken = taken.filter { found[$0.value] != nil }
      let come = found.filter { before[$0.key] == $0.value && settled[$0.key] != $0.value }
      let tasks = come.keys.sorted().compactMap { path in
        do throws(CommandFailure) {
          var task = try task(of: path, &taken)
          // It has changed since this process took it, whatever its modification time is.
          if settled[path] != nil { task.isDone = false }
          return task
        } catch {
          StandardStreams.complain(error.failure.detail)
          return nil
        }
      }
      // Results of an earlier run aren't reported.
      if !tasks.allSatisfy(\.isDone) { _ = perform(tasks.filter { !$0.isDone }, manifest) }
      settled.merge(come) { $1 }
      before = found
      Clock.system.pause(1)
    }
  }

  /// What tells a file from others, and its size and change time, which differ after every change.
  private struct Version: Equatable {
    let identity: [UInt64]
    let size: Int
    let changed: [Int]

    /// nil if the file is gone.
    init?(of path: String) {
      var status = stat()
      guard unsafe stat(path, &status) == 0 else { return nil }
      identity = [UInt64(status.st_dev), UInt64(status.st_ino)]
      size = status.st_size
      changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
    }
  }

  /// Makes the folder of the results, and opens the manifest if there is one.
  private func prepare() throws(CommandFailure) -> Int32? {
    if unsafe mkdir(folder, 0o777) != 0, errno != EEXIST { throw CommandFailure(system: errno, on: folder) }
    return try options.manifest.map { (path) throws(CommandFailure) in
      let file = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o666)
      guard file >= 0 else { throw CommandFailure(system: errno, on: path) }
      return file
    }
  }

  /// Works on the files, several at a time. Returns the number of those that failed.
  private func perform(_ tasks: [Task], _ manifest: Int32?) -> Int {
    let open = tasks.filter { !$0.isDone }
    for task in tasks where task.isDone { Self.write(Line(task, "skipped"), to: manifest) }
    let cores = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    let lanes = min(options.jobs ?? cores, open.count)
    let threads = self.threads ?? (lanes < cores ? 2 : 1)
    let next = Atomic(0)
    let ended = Atomic(0)
    let failed = Atomic(0)
    let output = Mutex(ProgressDisplay(progress))
    DispatchQueue.concurrentPerform(iterations: lanes) { _ in
      while true {
        let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
        guard index < open.count else { return }
        let task = open[index]
        let report = result(of: task, threads: threads)
        if report.failure != nil { failed.wrappingAdd(1, ordering: .relaxed) }
        let done = ended.wrappingAdd(1, ordering: .relaxed).newValue
        output.withLock { display in
          Self.write(Line(task, report.failure == nil ? self.done : "failed", report.failure), to: manifest)
          display.finish(report, of: task.input, fraction: Double(done) / Double(open.count))
        }
      }
    }
    let failures = failed.load(ordering: .relaxed)
    TemporaryFiles.shared.removeAll()
    if progress != .json {
      let counts = [(open.count - failures, done), (tasks.count - open.count, "skipped"), (failures, "failed")]
      StandardStreams.complain(counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", "))
    }
    return failures
  }

  private func result(of task: Task, threads: Int) -> WorkerReport {
    var display = ProgressDisplay(.none)
    do { return try make(task.input, task.output, threads, &display) } catch {
      let failure = try? ProgressDisplay.failure(error, namesPaths: false)
      return .failed(failure ?? WorkerFailure(code: "worker_failed", detail: "\(error)", retry: false))
    }
  }

  // MARK: The manifest

  private static func write(_ line: Line, to manifest: Int32?) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let manifest, let text = try? encoder.encode(line) else { return }
    _ = writeAll(Array(text) + [UInt8(ascii: "\n")], to: manifest)
  }

  // MARK: Names

  /// Returns what to do. Throws if two results would have the same name, or one would replace a file.
  private func tasks() throws(CommandFailure) -> [Task] {
    var (tasks, taken, seen) = ([Task](), [String: String](), Set<String>())
    for input in inputs {
      for source in try Self.files(at: input) {
        guard seen.insert(source).inserted else {
          throw CommandFailure(code: "name_taken", detail: "\(source) is named twice.")
        }
        let task = try task(of: source, &taken)
        guard !task.isOutdated || options.force else {
          throw CommandFailure(
            code: "name_taken",
            detail: "\(task.output) exists already and is older than its source; --force replaces it.")
        }
        tasks.append(task)
      }
    }
    guard !tasks.isEmpty else {
      throw CommandFailure(code: "empty_input", detail: "There are no files in \(inputs.joined(separator: ", ")).")
    }
    return tasks
  }

  /// Returns what to do with a file. Throws if its result would replace it, or the result of another one.
  /// - Parameter taken: the source of each result, by the result's path. This file's is added.
  private func task(of input: String, _ taken: inout [String: String]) throws(CommandFailure) -> Task {
    var task = Task(input: input, output: folder + (folder.hasSuffix("/") ? "" : "/") + outputName(of: input))
    guard taken[task.output, default: input] == input else {
      throw CommandFailure(
        code: "name_taken", detail: "\(input): another file would also become \(task.output). Name them one by one.")
    }
    taken[task.output] = input
    var (old, new) = (stat(), stat())
    guard unsafe stat(task.output, &new) == 0 else { return task }
    if unsafe stat(input, &old) == 0, old.st_ino == new.st_ino, old.st_dev == new.st_dev {
      throw CommandFailure(
        code: "name_taken", detail: "\(input) would be replaced by its result. Choose another folder for it.")
    }
    // A file of the same moment may have been changed since.
    let isDone = (new.st_mtim.tv_sec, new.st_mtim.tv_nsec) > (old.st_mtim.tv_sec, old.st_mtim.tv_nsec)
    (task.isDone, task.isOutdated) = (isDone && !options.force, !isDone)
    return task
  }

  private func outputName(of input: String) -> String {
    let name = input.split(separator: "/").last.map(String.init) ?? input
    guard let ending else { return name }
    let stem = name.lastIndex(of: ".").map { $0 == name.startIndex ? name[...] : name[..<$0] } ?? name[...]
    return "\(stem).\(ending)"
  }

  /// Returns the names in standard input, each ended by a zero byte.
  static func namesFromInput() -> [String] {
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
      throw CommandFailure(system: errno == 0 ? EACCES : errno, on: path)
    }
    let paths = names.filter { !$0.hasPrefix(".") }.sorted().map { path + (path.hasSuffix("/") ? "" : "/") + $0 }
    return paths.filter { unsafe stat($0, &status) == 0 && status.st_mode & S_IFMT == S_IFREG }
  }
}

extension FolderWork.Line {
  fileprivate init(_ task: FolderWork.Task, _ state: String, _ error: WorkerFailure? = nil) {
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
    if let failure = report.failure { return StandardStreams.complain("\(input): \(failure.detail)") }
    for warning in report.warnings where warning.isAboutWork {
      StandardStreams.complain("\(input): warning: \(warning.detail)")
    }
  }

  private func quoted(_ text: String) -> [UInt8] { (try? JSONEncoder().encode(text)).map(Array.init) ?? [] }
}
