import CLinux
import Dispatch
import Glibc
import Workers

/// How a worker ended.
package enum WorkerExit: Sendable, Equatable {
  /// It exited with this status.
  case status(Int32)
  /// It was killed by this signal.
  case signal(Int32)
  /// The service killed it because it used too much.
  case exceeded(WorkerExcess)
  /// It could not be started.
  case notStarted(errno: Int32)
}

/// Workers leave the processor to the service, so that they don't delay its answers.
package enum WorkerPriority: Sendable {
  /// A request waits for the worker.
  case request
  /// The work of a job.
  case job

  /// With these, a request's worker gets three times the time of a job's while both want the processor.
  var niceness: UInt8 {
    switch self {
    case .request: 5
    case .job: 10
    }
  }
}

/// A running child process, `stillwave worker`, which works on one file.
///
/// It writes `WorkerReport` lines to its standard output. Its standard input is a pipe, to which its `WorkerRequest` is
/// written before it starts. The pipe stays open while the service lives: when it closes, the child exits. The child
/// leads its own session, so that Ctrl-C in a terminal reaches only the service, and runs at lower priority than the
/// service.
///
/// Confined to `queue`, on which the handlers are called. A separate thread reads the output with blocking calls,
/// because a dispatch source per child would be torn down while epoll reports its hang-up, which occasionally causes a
/// use after free in libdispatch on Linux (`_dispatch_event_loop_drain`, within ten uploads).
package final class WorkerProcess: @unchecked Sendable {  // all state is touched on `queue` only
  private let queue: DispatchQueue
  private let identifier: pid_t
  private let input: Int32
  private let output: Int32
  private var isAlive = true
  /// Whether the service has killed it, and why, if it used too much.
  private var wasKilled = false
  private var excess: WorkerExcess?
  /// Whether it has reported that it has no memory, after which it crashes.
  private var isOutOfMemory = false
  private let watch: WorkerWatch
  private var line: [UInt8] = []
  /// Files that the child may lend to ffmpeg. They are taken back here if the child ends before it does so itself.
  private let files: [String]
  private let template: WorkerTemplate?
  /// The kind of its work, for `WorkerMemory`; nil if it isn't a worker.
  private let workName: String?
  private let onReport: @Sendable (WorkerReport) -> Void
  private let onExit: @Sendable (WorkerExit) -> Void

  /// The maximum length of a line from a child, in bytes.
  private static let lineLimit = 1 << 20

  /// Starts a worker with a request: a copy of `template`, or `program`. Calls `onReport` for every report and `onExit`
  /// once, after the last report. Returns nil if the worker can't be started; `onExit` is called then too.
  ///
  /// Takes about a millisecond, on `queue`.
  package static func start(
    program: String, template: WorkerTemplate?, _ request: WorkerRequest, _ priority: WorkerPriority,
    queue: DispatchQueue, onReport: @escaping @Sendable (WorkerReport) -> Void,
    onExit: @escaping @Sendable (WorkerExit) -> Void
  ) -> WorkerProcess? {
    var request = request
    let groups = WorkerGroups.own
    request.group = groups?.make(threads: WorkerAllowance.threads)
    let group = request.group
    // The arguments after `worker` are only labels for process listings.
    return start(
      program: program, template: template,
      arguments: ["worker", request.work.name, request.folder ?? request.source], input: request.line(),
      files: request.filesForFFmpeg, workName: request.work.name, folder: request.folder,
      allowance: request.fence.map { WorkerAllowance($0) }, priority: priority, queue: queue, onReport: onReport,
      onExit: {
        if let group { groups?.remove(group) }
        onExit($0)
      })
  }

  /// Starts any program.
  static func start(
    program: String, template: WorkerTemplate? = nil, arguments: [String], input: [UInt8], files: [String],
    workName: String? = nil, folder: String? = nil, allowance: WorkerAllowance? = nil, watch: WorkerWatch = .shared,
    priority: WorkerPriority = .job, queue: DispatchQueue,
    onReport: @escaping @Sendable (WorkerReport) -> Void,
    onExit: @escaping @Sendable (WorkerExit) -> Void
  ) -> WorkerProcess? {
    dispatchPrecondition(condition: .onQueue(queue))
    switch SpawnedChild.start(program, arguments, text: input, template: template, priority: priority) {
    case .success(let child):
      let worker = WorkerProcess(
        child, files: files, workName: workName, template: template, watch: watch, queue: queue, onReport: onReport,
        onExit: onExit)
      if let allowance {
        watch.add(child.identifier, folder: folder, allowance) { [weak worker] excess in
          guard let worker else { return }
          queue.async { worker.end(for: excess) }
        }
      }
      // Each child gets its own serial queue, so that its blocked thread doesn't occupy one of a shared queue's.
      DispatchQueue(label: "worker output").async { worker.listen() }
      return worker
    case .failure(let failure):
      queue.async { onExit(.notStarted(errno: failure.errno)) }
      return nil
    }
  }

  private init(
    _ child: SpawnedChild, files: [String], workName: String?, template: WorkerTemplate?, watch: WorkerWatch,
    queue: DispatchQueue, onReport: @escaping @Sendable (WorkerReport) -> Void,
    onExit: @escaping @Sendable (WorkerExit) -> Void
  ) {
    self.queue = queue
    self.watch = watch
    (identifier, input, output) = (child.identifier, child.input, child.output)
    self.files = files
    self.template = template
    self.workName = workName
    self.onReport = onReport
    self.onExit = onExit
  }

  /// Kills the child and every process that it has started. `onExit` is called afterwards.
  package func kill() {
    dispatchPrecondition(condition: .onQueue(queue))
    wasKilled = true
    end()
  }

  private func end(for excess: WorkerExcess) {
    guard !wasKilled else { return }
    self.excess = excess
    kill()
  }

  private func end() {
    if isAlive { _ = Glibc.kill(-identifier, SIGKILL) }
  }

  /// Reads the child's output to its end, then waits for the child to exit. Runs on the child's thread.
  private func listen() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(output, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      let piece = buffer.prefix(count)
      // Blocks until the lines are handled, which slows down a child that writes faster than that.
      queue.sync { receive(piece) }
    }
    // Usually the child is already exiting and the signal has no effect. A child that has closed its output but
    // continues to run is killed.
    queue.sync { end() }
    close(output)
    close(input)
    // Doesn't reap the child: while `isAlive` is true, its process ID must not be reused.
    var information = unsafe siginfo_t()
    while unsafe waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
    queue.async { [self] in reap() }
  }

  private func receive(_ piece: ArraySlice<UInt8>) {
    line += piece
    while let end = line.firstIndex(of: UInt8(ascii: "\n")) {
      if let report = WorkerReport(line: line[..<end]) {
        isOutOfMemory = isOutOfMemory || report.failure?.code == "memory_limit"
        onReport(report)
      }
      line.removeSubrange(...end)
    }
    if line.count > Self.lineLimit {
      line = []
      kill()
    }
  }

  /// Reaps the child. Doesn't block, because the child has already exited.
  private func reap() {
    isAlive = false
    watch.remove(identifier)
    let expected = Set(wasKilled ? [SIGKILL] : []).union(isOutOfMemory ? SpawnedChild.crashesOutOfMemory : [])
    let status = SpawnedChild.reap(identifier, workName: workName, template, expecting: expected)
    // The child's ffmpeg, which was killed with it, may still have them open for a moment.
    if status != 0 { TemporaryAccess.revoke(files) }
    let signal = status & 0x7F
    onExit(signal == 0 ? .status(status >> 8 & 0xFF) : excess.map { .exceeded($0) } ?? .signal(signal))
  }
}
