import Storage

/// Decides which job begins next.
///
/// Clients take turns (see `FairQueue`), so that one client's thousand jobs never delay another client's single job,
/// which waits only for jobs that are already running. A job that several clients wait for is queued for each of them.
///
/// Among a client's own jobs there are two rules. *Shorter jobs overtake a longer one, but their total work never
/// exceeds its own*: a job's rank is the work begun before it was added, plus its own work. The lowest rank goes first,
/// and of equal ranks the job that was added first. So short jobs pass a long one until it has waited for as much work
/// as it is itself; then it goes before all later jobs. *Long jobs leave a place free*, if there is more than one: one
/// client's long jobs do, so that another client's job never waits for one of them to end, and so do all long denoise
/// jobs, so that no waveform or short job waits for them.
///
/// If other nodes take jobs from the same queue, theirs count like the running ones for the turns and for the limit on
/// a client's running jobs, but take no place.
///
/// This is a value without a clock: work is counted in estimated seconds of one core.
struct JobSchedule {
  /// The estimated work of a job.
  struct Work {
    /// The estimate, in seconds of one core.
    var seconds: Double
    /// Whether the job must leave a place free.
    var isLong: Bool
    var isWaveform: Bool

    /// A job that takes one core more than this many seconds is long.
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

  /// The client and the work of a job that has ended.
  struct Ended {
    /// The clients that wait for it, beginning with the one that requested it.
    fileprivate(set) var clients: [Client]
    let work: Work

    /// Adds a client, to be in line for the job if it is added again.
    mutating func join(_ client: Client) {
      if !clients.contains(client) { clients.append(client) }
    }
  }

  private let places: Int
  private let runningLimit: @Sendable (Client) -> Int?
  private var queue = FairQueue<Waiting>()
  /// The tickets of each waiting job, its own client's first.
  private var tickets: [JobID: [FairQueue<Waiting>.Ticket]] = [:]
  /// The running jobs, each with the client in whose turn it began.
  private var running: [JobID: (turn: Client, job: Ended)] = [:]
  /// The work of all jobs begun so far.
  private var begunSeconds = 0.0

  /// Creates an empty schedule for at most `places` running jobs; with 0, none ever begins. `runningLimit` is the
  /// maximum number of running jobs of one client; nil for `places`.
  init(places: Int, runningLimit: @escaping @Sendable (Client) -> Int? = { _ in nil }) {
    precondition(places >= 0, "a number of places isn't negative")
    (self.places, self.runningLimit) = (places, runningLimit)
  }

  var hasWaiting: Bool { !queue.isEmpty }
  var freePlaces: Int { places - running.count }

  mutating func add(_ id: JobID, _ work: Work, for client: Client) {
    let waiting = Waiting(id: id, client: client, work: work, rank: begunSeconds + work.seconds)
    tickets[id, default: []].append(queue.append(waiting, for: client))
  }

  /// Queues a job again, for all clients that wait for it.
  mutating func add(_ id: JobID, _ ended: Ended) {
    add(id, ended.work, for: ended.clients[0])
    for client in ended.clients.dropFirst() { join(id, for: client) }
  }

  /// Queues a job for another client as well, or, if it has begun, in case it's queued again. Does nothing if that
  /// client waits for it already.
  mutating func join(_ id: JobID, for client: Client) {
    running[id]?.job.join(client)
    guard let lines = tickets[id], let first = lines.first, !lines.contains(where: { $0.client == client }),
      let waiting = queue[first]
    else { return }
    tickets[id]?.append(queue.append(waiting, for: client))
  }

  /// Removes a waiting job, to be added again later. nil if the job doesn't wait.
  mutating func take(_ id: JobID) -> Ended? {
    guard let lines = tickets[id], let first = lines.first, let waiting = queue[first] else { return nil }
    remove(id)
    return Ended(clients: lines.map(\.client), work: waiting.work)
  }

  /// Removes a waiting job.
  mutating func remove(_ id: JobID) {
    for ticket in tickets.removeValue(forKey: id) ?? [] { queue.remove(ticket) }
  }

  /// Returns the job to begin now, which takes a place until `end`; nil if none can begin.
  mutating func begin() -> JobID? {
    guard freePlaces > 0 else { return nil }
    let long = running.values.map(\.job).filter(\.work.isLong)
    let most = max(places - 1, 1)
    let next = queue.begin(own: .init(of: runningLimit)) { waiting in
      waiting.indices.filter { Self.leavesPlace(waiting[$0], beside: long, most) }
        .min { waiting[$0].rank < waiting[$1].rank }
    }
    guard let (turn, job) = next else { return nil }
    let clients = tickets[job.id, default: []].map(\.client)
    remove(job.id)
    running[job.id] = (turn, Ended(clients: clients, work: job.work))
    begunSeconds += job.work.seconds
    return job.id
  }

  /// Whether the place that long jobs must leave is still free after `next` begins.
  private static func leavesPlace(_ next: Waiting, beside long: [Ended], _ most: Int) -> Bool {
    guard next.work.isLong else { return true }
    return long.count { $0.clients[0] == next.client } < most
      && (next.work.isWaveform || long.count { !$0.work.isWaveform } < most)
  }

  /// Notes that another node runs a job that was taken from here.
  mutating func beginElsewhere(_ job: Ended) { queue.beginElsewhere(job.clients[0]) }

  /// Notes that another node doesn't run a job any more.
  mutating func endElsewhere(_ job: Ended) { queue.end(job.clients[0]) }

  /// Frees the place of a job. Returns nil if the job isn't running.
  @discardableResult
  mutating func end(_ id: JobID) -> Ended? {
    guard let (turn, job) = running.removeValue(forKey: id) else { return nil }
    queue.end(turn)
    return job
  }
}
