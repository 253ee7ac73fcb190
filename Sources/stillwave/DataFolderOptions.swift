import ArgumentParser
import AudioService
import CLinux
import Dispatch
import Glibc
import Processing
import Storage
import Synchronization
import Terms
import Workers

/// The options of the commands that work on a whole data folder.
struct DataFolderOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The service's data folder (default: STILLWAVE_DATA).", valueName: "DIR"))
  var data: String?

  /// The folder that was named. Throws if none was: a default could be the wrong one.
  func path() throws -> String {
    guard let path = setting("data", data), !path.isEmpty else {
      throw ValidationError("Name the data folder with --data DIR or STILLWAVE_DATA.")
    }
    return path
  }

  /// Turns root, for good, into the user who owns the folder `path`, or the folder that it would be made in: the
  /// service couldn't read files that belong to root. Does nothing for other users.
  private static func becomeOwner(of path: String) throws {
    guard geteuid() == 0 else { return }
    var (path, info) = (path, stat())
    while unsafe stat(path, &info) != 0 {
      guard errno == ENOENT, path != ".", path != "/" else { throw POSIXError(path) }
      while path.count > 1, path.hasSuffix("/") { path.removeLast() }
      let slash = path.lastIndex(of: "/")
      path = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    }
    guard info.st_uid != 0 else { return }
    guard setgroups(0, nil) == 0, setegid(info.st_gid) == 0, seteuid(info.st_uid) == 0 else {
      throw POSIXError(path)
    }
    // systemd keeps the folder of a dynamic user where only root can find it, and a key may be root's.
    _ = stillwave_keep_reading()
  }

  /// A system call that failed on `path`.
  private struct POSIXError: Error, CustomStringConvertible {
    let description: String

    init(_ path: String) { description = "\(path): \(unsafe String(cString: strerror(errno)))" }
  }

  /// Runs `work`, which returns whether everything is in order, with a progress display. Exits with status 1 if it
  /// isn't, and with a message if `work` throws. Root becomes the owner of the folder `path` before.
  static func run(
    asOwnerOf path: String? = nil, showing style: ProgressOptions, _ work: (inout ShareDisplay) throws -> Bool
  ) throws {
    var display = ShareDisplay(style.progress)
    do {
      // While there is only one thread: others would keep other rights.
      if let path { try becomeOwner(of: path) }
      Cancellation.watch()
      let isWell = try work(&display)
      display.end()
      guard isWell else { throw ExitCode.failure }
    } catch  where !(error is ExitCode) && !(error is ValidationError) {
      display.end()
      writeAll(Array("stillwave: \(Service.words(forFailedStart: error))\n".utf8), to: STDERR_FILENO)
      throw ExitCode.failure
    }
  }
}

/// Shows which share of the work is done.
struct ShareDisplay {
  private var display: ProgressDisplay
  private var isShown = false

  init(_ style: ProgressStyle) { display = ProgressDisplay(style) }

  /// Shows a share of the work, 0 … 1. Returns false once the user has canceled the work.
  mutating func show(share: Double) -> Bool {
    isShown = true
    display.show(WorkerProgress(fraction: share, readyFrames: 0, totalFrames: nil, estimatedFrames: nil))
    return !Cancellation.isAsked
  }

  /// Writes what the result consists of.
  func finish(_ counts: KeyValuePairs<String, Int>) {
    let line =
      display.isJSON
      ? "{" + counts.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
      : counts.map { "\($1) \($0)" }.joined(separator: ", ")
    StandardStreams.write(Array("\(line)\n".utf8))
  }

  /// Ends the line of the bar.
  mutating func end() {
    if isShown { display.endLine() }
    isShown = false
  }
}

/// SIGINT and SIGTERM, for work that must be undone before the process ends.
private enum Cancellation {
  private static let asked = Atomic(false)

  static var isAsked: Bool { asked.load(ordering: .relaxed) }

  /// Watches for the signals until the process ends; tearing dispatch sources down isn't safe on Linux.
  static func watch() {
    let queue = DispatchQueue(label: "signals")
    for number in [SIGINT, SIGTERM] {
      _ = signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { withExtendedLifetime(source) { asked.store(true, ordering: .relaxed) } }
      source.resume()
    }
  }
}
