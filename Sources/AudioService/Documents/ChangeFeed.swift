import Dispatch
import Jobs
import Storage
import Synchronization

/// The latest changes of recordings and jobs, numbered, for those who follow the list. It keeps only what changed, not
/// how, so a follower who reads slowly costs nothing: it gets the current state of each thing that has changed since.
final class ChangeFeed: Sendable {
  /// What a change was about.
  enum Subject: Hashable, Sendable {
    case recording(RecordingID)
    case deleted(Deletion)
    case job(JobID)
  }

  /// A place between two changes, as the ID of an event: "1f3c…-42".
  struct Place: Equatable, Sendable, CustomStringConvertible {
    /// Identifies the run of the service: numbers begin again with the next.
    let run: UInt64
    /// The number of changes before it.
    let number: UInt64

    init(run: UInt64, number: UInt64) { (self.run, self.number) = (run, number) }

    /// Parses a `Last-Event-ID`; nil if no event can have had this ID.
    init?(_ text: String) {
      let parts = text.split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 2, let run = UInt64(parts[0], radix: 16), let number = UInt64(parts[1]) else { return nil }
      self.init(run: run, number: number)
    }

    var description: String { String(run, radix: 16) + "-\(number)" }
  }

  private struct Waiter {
    let deadline: DispatchTime
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    /// A ring of the latest subjects; the change with number n is at n % limit.
    var subjects: [Subject] = []
    /// The number of all changes so far.
    var count: UInt64 = 0
    var waiters: [UInt64: Waiter] = [:]
    var hasEnded = false
  }

  /// The number of changes that are kept: a follower that misses more has to read the list again.
  static let limit = 4096

  /// The open streams of each client.
  let streams: ClientTally
  private let run = UInt64.random(in: 1...UInt64.max)
  private let state = Mutex(State())
  private let nextKey = Atomic<UInt64>(0)
  private let timer = DeadlineTimer(label: "list events")

  init(streams: ClientTally) { self.streams = streams }

  /// The place after the latest change.
  var now: Place { Place(run: run, number: state.withLock { $0.count }) }

  /// Whether `endWaits` was called.
  var waitsHaveEnded: Bool { state.withLock { $0.hasEnded } }

  /// Adds the changes of a transaction or a job. Deletions come last, because a deleted recording's job has changed
  /// too.
  func post(_ changes: CatalogChanges) {
    let subjects =
      changes.recordings.map(Subject.recording) + changes.jobs.map(Subject.job) + changes.deleted.map(Subject.deleted)
    guard !subjects.isEmpty else { return }
    let waiting = state.withLock { state in
      for subject in subjects {
        let slot = Int(state.count % UInt64(Self.limit))
        if slot < state.subjects.count { state.subjects[slot] = subject } else { state.subjects.append(subject) }
        state.count += 1
      }
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiting { waiter.continuation.resume() }
  }

  /// Returns what has changed since `place`, each thing once, in the order of the latest change, at most `most` of
  /// them, and the place after them. nil if the place is from another run, or so old that changes may be missing.
  func changes(since place: Place, most: Int) -> (subjects: [Subject], place: Place)? {
    state.withLock { state in
      guard place.run == run, place.number <= state.count, state.count - place.number <= UInt64(Self.limit) else {
        return nil
      }
      let end = min(state.count, place.number + UInt64(most))
      var seen: Set<Subject> = []
      var found: [Subject] = []
      for number in (place.number..<end).reversed() {
        let subject = state.subjects[Int(number % UInt64(Self.limit))]
        if seen.insert(subject).inserted { found.append(subject) }
      }
      return (found.reversed(), Place(run: run, number: end))
    }
  }

  /// Returns when something has changed since `place`, `seconds` have passed, `endWaits` is called, or the caller's
  /// Task is canceled.
  func wait(since place: Place, seconds: Double) async {
    let key = nextKey.wrappingAdd(1, ordering: .relaxed).newValue
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let deadline = DispatchTime.now() + seconds
        let isTaken = state.withLock { state in
          guard !state.hasEnded, state.count == place.number, seconds > 0 else { return false }
          state.waiters[key] = Waiter(deadline: deadline, continuation: continuation)
          return true
        }
        guard isTaken else { return continuation.resume() }
        timer.schedule(by: deadline) { [self] in wakeLate($0) }
        // If the Task was canceled before this point, `onCancel` found no waiter to wake.
        if Task.isCancelled { wake(key) }
      }
    } onCancel: {
      wake(key)
    }
  }

  /// Ends all waits, now and in future, because the service is stopping.
  func endWaits() {
    let waiting = state.withLock { state in
      defer { (state.waiters, state.hasEnded) = ([:], true) }
      return Array(state.waiters.values)
    }
    for waiter in waiting { waiter.continuation.resume() }
  }

  private func wake(_ key: UInt64) {
    state.withLock { $0.waiters.removeValue(forKey: key) }?.continuation.resume()
  }

  /// Wakes the followers that have waited long enough. Returns the earliest deadline of the others.
  private func wakeLate(_ now: DispatchTime) -> DispatchTime? {
    let (late, next) = state.withLock { state -> ([Waiter], DispatchTime?) in
      let late = state.waiters.filter { $0.value.deadline <= now }
      for key in late.keys { state.waiters[key] = nil }
      return (Array(late.values), state.waiters.values.map(\.deadline).min())
    }
    for waiter in late { waiter.continuation.resume() }
    return next
  }
}
