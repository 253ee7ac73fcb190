import Dispatch
import HTTP
import Processing
import Synchronization

/// Runs short children that a request waits for, some at a time, apart from the jobs' children. Clients take turns, and
/// no two of them ever have all the places.
final class WorkerLane: Sendable {
  /// What came of a child.
  struct Ending: Sendable {
    /// The last thing it reported; nil if there was none.
    let report: WorkerReport?
    let exit: WorkerExit
    /// Whether it was killed because it took too long, from its start on.
    let tookTooLong: Bool
  }

  /// How many callers wait at the most. `name` is the limit's in the code of a refusal, `limit_…`.
  struct WaitingLimits: Sendable {
    let name: String
    let total: Int
    let perClient: Int
  }

  private let program: String
  private let patience: Double
  private let queue: DispatchQueue
  private let places: FairPlaces
  private let waiting: WaitingLimits

  init(_ configuration: Configuration, label: String, waiting: WaitingLimits) {
    program = configuration.program
    patience = configuration.childPatience
    queue = DispatchQueue(label: label)
    let places = max(2, configuration.workerCount)
    self.waiting = waiting
    // One more for whoever comes next: another client's child may take its time.
    self.places = FairPlaces(
      .init(
        places: places + 1, placesPerClient: places / 2, waiting: waiting.total, waitingPerClient: waiting.perClient))
  }

  /// Callers that wait for a place.
  var waitingCount: Int { places.waitingCount }

  /// Starts a worker on `request` when it is the client's turn. It is killed when it takes longer than that; the
  /// wait for the turn doesn't count.
  ///
  /// Throws `.limitReached` or `.workerUnavailable` where too many wait, and a problem where the caller's Task is
  /// cancelled before its turn. With `endsWithCaller` a child that runs is killed then, too.
  func run(
    _ request: WorkerRequest, for client: Client, timeoutSeconds: Double, endsWithCaller: Bool = false
  ) async throws -> Ending {
    do throws(FairPlaces.Refusal) { try await places.take(for: client) } catch {
      throw error.problem(of: waiting.name)
    }
    defer { places.give(back: client) }
    let last = LastReport()
    return await withTaskCancellationHandler {
      await child(request, last, timeoutSeconds)
    } onCancel: {
      guard endsWithCaller else { return }
      queue.async {
        last.isUnwanted = true
        last.worker?.kill()
      }
    }
  }

  private func child(_ request: WorkerRequest, _ last: LastReport, _ timeoutSeconds: Double) async -> Ending {
    await withCheckedContinuation { continuation in
      queue.async { [self] in
        let worker = WorkerProcess.start(
          program: program, request, queue: queue, onReport: { last.report = $0 },
          onExit: {
            continuation.resume(returning: Ending(report: last.report, exit: $0, tookTooLong: last.tookTooLong))
          })
        last.worker = worker
        if last.isUnwanted { worker?.kill() }
        queue.asyncAfter(deadline: .now() + timeoutSeconds * patience) { [weak worker] in
          guard let worker else { return }
          last.tookTooLong = true
          worker.kill()
        }
      }
    }
  }

  /// The report of a child that ended well; it is killed when the caller's Task is cancelled. Throws a problem in the
  /// child's words where the request is at fault, `.workerUnavailable` where the child died, took too long, or too many
  /// wait; also what `run` throws.
  func report(of request: WorkerRequest, for client: Client, timeoutSeconds: Double) async throws -> WorkerReport? {
    let ending = try await run(request, for: client, timeoutSeconds: timeoutSeconds, endsWithCaller: true)
    if ending.exit == .status(0) { return ending.report }
    if let failure = ending.report?.failure, !failure.retry { throw ServiceError(failure) }
    throw ServiceError.workerUnavailable(
      reason: ending.report?.failure?.detail ?? "a child ended with \(ending.exit)")
  }

  private final class LastReport: @unchecked Sendable {  // touched on `queue` only
    var report: WorkerReport?
    var tookTooLong = false
    weak var worker: WorkerProcess?
    /// Whether nobody waits for the child any more.
    var isUnwanted = false
  }
}
