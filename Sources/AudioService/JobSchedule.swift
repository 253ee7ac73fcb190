import Storage

/// Which job is begun next.
///
/// Two rules. *A job is overtaken by shorter ones, but never by more work than it is itself*: its rank is the work that
/// had been begun when it came, plus its own; the lowest rank goes first, and of equals the one that came first. So short
/// jobs pass long ones, and a long one that has waited for as much work as it is passes whatever comes then. *Long
/// denoising leaves a place free*, where there is more than one: a waveform, or a short job, never waits for its end.
///
/// A value without a clock: work is counted in seconds of one core, as estimated beforehand.
struct JobSchedule {
  /// What is known of a job beforehand.
  struct Work {
    /// Seconds of one core, estimated.
    var seconds: Double
    /// Whether it may take any place that is free.
    var isLong: Bool

    /// Long is what takes a core longer than this, in seconds.
    private static let longSeconds = 10.0

    /// `samples` counts all channels. On one core of the machine this was written on a waveform takes a second for some
    /// 40 million samples of MP3, denoising for some 8 million.
    init(_ kind: JobKind, samples: Double) {
      seconds = samples / (kind == .waveform ? 40e6 : 8e6)
      isLong = kind != .waveform && seconds > Self.longSeconds
    }
  }

  private struct Waiting {
    let id: JobID
    let work: Work
    let rank: Double
  }

  private let places: Int
  private var waiting: [Waiting] = []
  private var running: [JobID: Work] = [:]
  /// The work of all jobs that were begun so far.
  private var begunSeconds = 0.0

  /// `places`: jobs that may run at once, 1 or more.
  init(places: Int) {
    precondition(places >= 1, "a schedule has a place")
    self.places = places
  }

  var hasWaiting: Bool { !waiting.isEmpty }
  var freePlaces: Int { places - running.count }

  mutating func add(_ id: JobID, _ work: Work) {
    waiting.append(Waiting(id: id, work: work, rank: begunSeconds + work.seconds))
  }

  /// Takes back a job that waits.
  mutating func remove(_ id: JobID) { waiting.removeAll { $0.id == id } }

  mutating func removeAll() { waiting = [] }

  /// The job to begin now, which has a place from then on; nil where none may be begun.
  mutating func begin() -> JobID? {
    guard freePlaces > 0 else { return nil }
    let longPlaces = max(places - 1, 1) - running.values.count(where: \.isLong)
    let candidates = waiting.indices.filter { !waiting[$0].work.isLong || longPlaces > 0 }
    guard let next = candidates.min(by: { waiting[$0].rank < waiting[$1].rank }) else { return nil }
    let job = waiting.remove(at: next)
    running[job.id] = job.work
    begunSeconds += job.work.seconds
    return job.id
  }

  /// The place of a job that was begun is free again; the work it was.
  @discardableResult
  mutating func end(_ id: JobID) -> Work? { running.removeValue(forKey: id) }
}
