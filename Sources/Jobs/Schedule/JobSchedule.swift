import Storage

/// Which job is begun next.
///
/// Clients take turns (see `FairQueue`), so that one client's thousand jobs never hold up another's one: a newcomer
/// waits only for what runs already. A job that several clients wait for is in the lines of all of them.
///
/// Among a client's own jobs there are two rules. *A job is overtaken by shorter ones, but never by more work than it
/// is itself*: its rank is the work that had been begun when it came, plus its own; the lowest rank goes first, and of
/// equals the one that came first. So short jobs pass long ones, and a long one that has waited for as much work as it
/// is passes whatever comes then. *Long jobs leave a place free*, where there is more than one: those of one client, so
/// that another's never waits for their end; and all long denoising, so that no waveform and no short job does.
///
/// A value without a clock: work is counted in seconds of one core, as estimated beforehand.
struct JobSchedule {
  /// What is known of a job beforehand.
  struct Work {
    /// Seconds of one core, estimated.
    var seconds: Double
    /// Whether it must leave a place to others.
    var isLong: Bool
    var isWaveform: Bool

    /// Long is what takes a core longer than this, in seconds.
    private static let longSeconds = 10.0

    init(seconds: Double, isWaveform: Bool = false) {
      self.seconds = seconds
      isLong = seconds > Self.longSeconds
      self.isWaveform = isWaveform
    }
  }

  private struct Waiting {
    let id: JobID
    let client: Client
    let work: Work
    let rank: Double
  }

  /// A job that ended, as it was added.
  struct Ended {
    let client: Client
    let work: Work
  }

  private let places: Int
  private var queue = FairQueue<Waiting>()
  /// The places in line of each job that waits, its own client's first.
  private var tickets: [JobID: [FairQueue<Waiting>.Ticket]] = [:]
  /// With the client in whose turn it was begun.
  private var running: [JobID: (turn: Client, job: Ended)] = [:]
  /// The work of all jobs that were begun so far.
  private var begunSeconds = 0.0

  /// `places`: jobs that may run at once, 1 or more.
  init(places: Int) {
    precondition(places >= 1, "a schedule has a place")
    self.places = places
  }

  var hasWaiting: Bool { !queue.isEmpty }
  var freePlaces: Int { places - running.count }

  mutating func add(_ id: JobID, _ work: Work, for client: Client) {
    let waiting = Waiting(id: id, client: client, work: work, rank: begunSeconds + work.seconds)
    tickets[id, default: []].append(queue.append(waiting, for: client))
  }

  /// Has another client wait for a job as well. Nothing happens where it doesn't wait (any more), or that client is in
  /// line for it already.
  mutating func join(_ id: JobID, for client: Client) {
    guard let lines = tickets[id], let first = lines.first, !lines.contains(where: { $0.client == client }),
      let waiting = queue[first]
    else { return }
    tickets[id]?.append(queue.append(waiting, for: client))
  }

  /// Takes back a job that waits.
  mutating func remove(_ id: JobID) {
    for ticket in tickets.removeValue(forKey: id) ?? [] { queue.remove(ticket) }
  }

  mutating func removeAll() {
    queue.removeAll()
    tickets = [:]
  }

  /// The job to begin now, which has a place from then on; nil where none may be begun.
  mutating func begin() -> JobID? {
    guard freePlaces > 0 else { return nil }
    let long = running.values.map(\.job).filter(\.work.isLong)
    let most = max(places - 1, 1)
    let next = queue.begin { waiting in
      waiting.indices.filter { Self.leavesPlace(waiting[$0], beside: long, most) }
        .min { waiting[$0].rank < waiting[$1].rank }
    }
    guard let (turn, job) = next else { return nil }
    remove(job.id)
    running[job.id] = (turn, Ended(client: job.client, work: job.work))
    begunSeconds += job.work.seconds
    return job.id
  }

  /// Whether a place stays free where one must when this is begun.
  private static func leavesPlace(_ next: Waiting, beside long: [Ended], _ most: Int) -> Bool {
    guard next.work.isLong else { return true }
    return long.count { $0.client == next.client } < most
      && (next.work.isWaveform || long.count { !$0.work.isWaveform } < most)
  }

  /// The place of a job that was begun is free again; nil where it was not.
  @discardableResult
  mutating func end(_ id: JobID) -> Ended? {
    guard let (turn, job) = running.removeValue(forKey: id) else { return nil }
    queue.end(turn)
    return job
  }
}
