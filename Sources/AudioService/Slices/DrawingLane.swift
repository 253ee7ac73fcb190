import HTTP
import Jobs
import Terms

/// Does what blocks for a while, such as drawing pictures or reading samples, separately from the queue of uploads and
/// the catalog. Clients take turns; with two places or more, no client has them all.
final class DrawingLane: Sendable {
  private let queue: WorkQueue
  private let places: FairPlaces
  private let runs = Histogram.ofSeconds()
  private let clock: Clock
  private let waiting: WaitingLimits
  private let seconds: JobSecondsCounter?

  /// `places`: how many callers are served at the same time. `seconds` counts the time as that of jobs, where callers
  /// ask for it; nil if none counts.
  init(
    _ clock: Clock, label: String, places: Int, perClient: Int, waiting: WaitingLimits, seconds: JobSecondsCounter?
  ) {
    (self.waiting, self.seconds, self.clock) = (waiting, seconds, clock)
    queue = WorkQueue(label: label)
    self.places = FairPlaces(
      .init(
        places: places, placesPerClient: perClient, waiting: waiting.total, waitingPerClient: waiting.perClient), clock)
  }

  /// The figures for operators.
  var figures: LaneFigures { LaneFigures(waiting: places.waitingCount, waits: places.waits, runs: runs) }

  /// Runs `body`, which blocks, when it is the client's turn, unless the caller's Task is canceled before.
  ///
  /// Throws `.limitReached` or `.workerUnavailable` if too many callers wait and, if the time counts as that of jobs,
  /// `.clientDaySpent`. `isUnderWay` skips these limits, for responses that have been sent in part.
  func run<R: Sendable>(
    for client: Client, isUnderWay: Bool = false, countsAsJob: Bool = false,
    _ body: @escaping @Sendable () throws -> R
  ) async throws -> R {
    try await turn(of: client, isUnderWay: isUnderWay, countsAsJob: countsAsJob) {
      try await queue.run { [seconds, clock] () throws(any Error) in
        let start = clock.now
        defer { if countsAsJob { seconds?.add(clock.seconds(since: start), of: client) } }
        return try body()
      }
    }
  }

  /// Does that with a `body` that doesn't block and whose time isn't counted.
  func turn<R: Sendable>(
    of client: Client, isUnderWay: Bool = false, countsAsJob: Bool = false, _ body: () async throws -> R
  ) async throws -> R {
    if !isUnderWay, countsAsJob { try seconds?.check(client) }
    do throws(FairPlaces.Refusal) { try await places.take(for: client, evenIfFull: isUnderWay) } catch {
      throw error.problem(of: waiting.name)
    }
    defer { places.give(back: client) }
    let start = clock.now
    defer { runs.add(clock.seconds(since: start)) }
    return try await body()
  }
}

/// Limits of waiting callers. `name` names the limit in a refusal's code, `limit_…`.
struct WaitingLimits: Sendable {
  let name: String
  let total: Int
  let perClient: Int
}

extension FairPlaces.Refusal {
  /// Returns the error for a caller that got no place; `name` names the limit in the code, `limit_…`.
  func problem(of name: String) -> any Error {
    switch self {
    case .clientIsFull(let limit): ServiceError.limitReached(name, limit: limit, retryAfter: 5)
    case .full(let limit): ServiceError.workerUnavailable(reason: "\(limit) requests wait already")
    case .cancelled: RequestError.clientLeft
    }
  }
}
