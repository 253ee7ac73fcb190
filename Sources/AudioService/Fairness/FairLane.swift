import HTTP
import Jobs
import Storage
import Terms

/// Work of one kind, in which clients take turns. Limits how many callers are served at the same time and how many
/// wait, in all and of one client; where a client can't have all places, another one never waits for it.
final class FairLane: Sendable {
  private let queue: WorkQueue
  private let places: FairPlaces
  private let runs = Histogram.ofSeconds()
  private let clock: Clock
  private let waiting: WaitingLimits
  private let seconds: JobSecondsCounter?

  /// `places`: how many callers are served at the same time. `perClient`: how many of these places one client may have.
  /// `perRecording`: how many of a client's places one recording may have. `seconds` counts the time as that of jobs,
  /// where callers ask for it; nil if none counts.
  init(
    _ clock: Clock, label: String, places: Int, perClient: Int, perRecording: Int = .max, waiting: WaitingLimits,
    seconds: JobSecondsCounter? = nil
  ) {
    (self.waiting, self.seconds, self.clock) = (waiting, seconds, clock)
    queue = WorkQueue(label: label, threads: places)
    self.places = FairPlaces(
      .init(
        places: places, placesPerClient: perClient, placesPerRecording: perRecording, waiting: waiting.total,
        waitingPerClient: waiting.perClient), clock)
  }

  /// The figures for operators.
  var figures: LaneFigures { LaneFigures(waiting: places.waitingCount, waits: places.waits, runs: runs) }

  /// Runs `body`, which blocks, on a thread of the lane's own when it is the client's turn. Otherwise as `turn`, and
  /// counts the time as that of jobs if `countsAsJob`.
  func run<R: Sendable>(
    for client: Client, of recording: RecordingID? = nil, isUnderWay: Bool = false, countsAsJob: Bool = false,
    _ body: @escaping @Sendable () throws -> R
  ) async throws -> R {
    try await turn(of: client, on: recording, isUnderWay: isUnderWay, countsAsJob: countsAsJob) {
      try await queue.run { [self] () throws(any Error) in
        let start = clock.now
        defer { if countsAsJob { countAsJob(clock.seconds(since: start), of: client) } }
        return try body()
      }
    }
  }

  /// Runs `body`, which doesn't block, when it is the client's turn, unless the caller's Task is canceled before.
  /// `recording`: what it works on, for a lane that limits this.
  ///
  /// Throws `.limitReached` or `.workerUnavailable` if too many callers wait and, if the time counts as that of jobs,
  /// `.clientDaySpent`. `isUnderWay` skips these limits, for responses that have been sent in part. `name` replaces the
  /// one of the lane's limit.
  func turn<R>(
    of client: Client, on recording: RecordingID? = nil, isUnderWay: Bool = false, countsAsJob: Bool = false,
    name: String? = nil, _ body: () async throws -> R
  ) async throws -> R {
    if !isUnderWay, countsAsJob { try seconds?.check(client) }
    do throws(FairPlaces.Refusal) { try await places.take(for: client, of: recording, evenIfFull: isUnderWay) } catch {
      switch error {
      case .clientIsFull(let limit):
        throw ServiceError.limitReached(name ?? waiting.name, limit: limit, retryAfter: 5)
      case .full(let limit): throw ServiceError.workerUnavailable(reason: "\(limit) requests wait already")
      case .cancelled: throw RequestError.clientLeft
      }
    }
    let start = clock.now
    defer {
      places.give(back: client, of: recording)
      runs.add(since: start, by: clock)
    }
    return try await body()
  }

  /// Counts time that a client was served as that of jobs.
  func countAsJob(_ time: Double, of client: Client) { seconds?.add(time, of: client) }
}

extension FairLane {
  /// Runs `body`, which reads the request's content and stores it, at once if the content is as short as other
  /// requests' JSON, and otherwise as `turn`: files of labels may have 16 MiB and stay in memory until they are stored.
  func intake<R>(
    _ request: HTTPRequest, for client: Client, name: String, _ body: () async throws -> R
  ) async throws -> R {
    if let length = request.body.declaredLength, length <= JSONMembers.byteLimit { return try await body() }
    return try await turn(of: client, name: name, body)
  }
}

/// Limits of waiting callers. `name` names the limit in a refusal's code, `limit_…`.
struct WaitingLimits: Sendable {
  let name: String
  let total: Int
  let perClient: Int
}
