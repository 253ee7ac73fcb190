import Dispatch
import HTTP
import Jobs
import Synchronization
import Terms
import Workers

/// Runs short children that requests wait for, a few at a time, separately from the jobs' children. Clients take turns,
/// and two clients never hold all the places.
final class WorkerLane: Sendable {
  /// How a child ended.
  struct Ending: Sendable {
    /// Its last report; nil if there was none.
    let report: WorkerReport?
    let exit: WorkerExit
    /// Whether it was killed because it ran too long.
    let tookTooLong: Bool

    /// Returns the last report of a child that succeeded. Throws the child's problem if the request is at fault, and
    /// `.workerUnavailable` if the child died or took too long.
    func success() throws(ServiceError) -> WorkerReport? {
      if exit == .status(0) { return report }
      if let failure = report?.failure, !failure.retry { throw ServiceError(failure) }
      throw .workerUnavailable(reason: report?.failure?.detail ?? "a child ended with \(exit)")
    }
  }

  private let program: String
  private let template: WorkerTemplate?
  private let patience: Double
  private let queue: DispatchQueue
  private let lane: FairLane
  private let clock: Clock

  /// `isBrief`: whether the children take milliseconds, so that a client may have one per core. `seconds`: what counts
  /// their time as that of jobs; nil if it doesn't count.
  init(
    _ configuration: Configuration, label: String, waiting: WaitingLimits, isBrief: Bool = false,
    seconds: JobSecondsCounter? = nil
  ) {
    clock = configuration.clock
    program = configuration.program
    template = configuration.workerTemplate
    patience = configuration.childPatience
    queue = DispatchQueue(label: label)
    let places = max(2, configuration.workerCount)
    // One extra place for the next client, because the others' children may take a while.
    lane = FairLane(
      configuration.clock, label: label, places: (isBrief ? 2 * places : places) + 1,
      perClient: isBrief ? places : places / 2, waiting: waiting, seconds: seconds)
  }

  /// The figures for operators.
  var figures: LaneFigures { lane.figures }

  /// Starts a worker on `request` when it is the client's turn, and kills it if it runs longer than `timeoutSeconds`;
  /// waiting for the turn doesn't count.
  ///
  /// Throws `.limitReached` or `.workerUnavailable` if too many callers wait, `.clientDaySpent`, and a problem if the
  /// caller's Task is canceled before its turn. With `endsWithCaller`, canceling the Task also kills a running child.
  /// `onReport` is called with each report.
  func run(
    _ request: WorkerRequest, for client: Client, timeoutSeconds: Double, endsWithCaller: Bool = false,
    onReport: @escaping @Sendable (WorkerReport) -> Void = { _ in }
  ) async throws -> Ending {
    try await lane.turn(of: client, countsAsJob: true) {
      let (last, start) = (LastReport(), clock.now)
      defer { lane.countAsJob(clock.seconds(since: start), of: client) }
      return await withTaskCancellationHandler {
        await child(request, last, timeoutSeconds, onReport)
      } onCancel: {
        guard endsWithCaller else { return }
        queue.async {
          last.isUnwanted = true
          last.worker?.kill()
        }
      }
    }
  }

  private func child(
    _ request: WorkerRequest, _ last: LastReport, _ timeoutSeconds: Double,
    _ onReport: @escaping @Sendable (WorkerReport) -> Void
  ) async -> Ending {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        let worker = WorkerProcess.start(
          program: program, template: template, request, .request, queue: queue,
          onReport: {
            last.report = $0
            onReport($0)
          },
          onExit: {
            continuation.resume(returning: Ending(report: last.report, exit: $0, tookTooLong: last.tookTooLong))
          })
        last.worker = worker
        if last.isUnwanted { worker?.kill() }
        clock.after(timeoutSeconds * patience, on: queue) { [weak worker] in
          guard let worker else { return }
          last.tookTooLong = true
          worker.kill()
        }
      }
    }
  }

  private final class LastReport: @unchecked Sendable {  // touched on `queue` only
    var report: WorkerReport?
    var tookTooLong = false
    weak var worker: WorkerProcess?
    /// Whether the caller no longer waits for the child.
    var isUnwanted = false
  }
}
