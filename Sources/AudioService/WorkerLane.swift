import Dispatch
import Processing
import Synchronization

/// Runs short children that a request waits for, some at a time, apart from the jobs' children.
final class WorkerLane: Sendable {
  private let program: String
  private let queue: DispatchQueue
  private let places: AsyncPlaces
  private let timeoutSeconds: Int
  /// Callers that wait or are served.
  private let callers = Mutex(0)

  /// Callers at the most in a lane that turns some away.
  private static let callerLimit = 64

  init(_ configuration: Configuration, label: String, timeoutSeconds: Int) {
    program = configuration.program
    queue = DispatchQueue(label: label)
    places = AsyncPlaces(count: max(2, configuration.workerCount))
    self.timeoutSeconds = timeoutSeconds
  }

  /// Runs `stillwave` with `arguments`; its last report, and how it ended. One that takes too long is killed.
  func run(_ arguments: [String]) async -> (WorkerReport, WorkerExit) {
    await places.take()
    defer { places.give() }
    return await withCheckedContinuation { continuation in
      queue.async { [self] in
        let last = LastReport()
        let worker = WorkerProcess.start(
          program: program, arguments: arguments, queue: queue, onReport: { last.report = $0 },
          onExit: { continuation.resume(returning: (last.report, $0)) })
        queue.asyncAfter(deadline: .now() + .seconds(timeoutSeconds)) { [weak worker] in worker?.kill() }
      }
    }
  }

  /// The report of a child that ended well. Throws a problem in the child's words where the request is at fault,
  /// `.workerUnavailable` where the child died, took too long, or too many wait.
  func report(of arguments: [String]) async throws -> WorkerReport {
    guard enter() else { throw ServiceError.workerUnavailable(reason: "\(Self.callerLimit) requests wait already") }
    defer { callers.withLock { $0 -= 1 } }
    let (report, exit) = await run(arguments)
    if exit == .status(0) { return report }
    if let failure = report.error, !failure.retry { throw ServiceError(failure) }
    throw ServiceError.workerUnavailable(reason: report.error?.detail ?? "a child ended with \(exit)")
  }

  private func enter() -> Bool {
    callers.withLock { count in
      guard count < Self.callerLimit else { return false }
      count += 1
      return true
    }
  }

  private final class LastReport: @unchecked Sendable {  // touched on `queue` only
    var report = WorkerReport()
  }
}
