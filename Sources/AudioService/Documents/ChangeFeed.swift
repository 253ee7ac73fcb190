import Dispatch
import Jobs
import Storage
import Synchronization
import Terms

/// The latest changes of each tenant's recordings and jobs, numbered, for those who follow the list. It keeps only what
/// changed, not how, so a follower who reads slowly costs nothing: it gets the current state of each thing that has
/// changed since. Tenants have their own numbers, which tell nothing about what others do.
final class ChangeFeed: Sendable {
  /// What a change was about.
  enum Subject: Hashable, Sendable {
    case recording(RecordingID)
    case deleted(RecordingID)
    case job(JobID)
    /// Progress that no job of the batch shows. Not an event of the list.
    case batch(BatchID)
  }

  /// A place between two changes, as the ID of an event: "1f3c…-42".
  struct Place: Equatable, Sendable, CustomStringConvertible {
    /// Identifies the numbers, which begin again with the next run of the service.
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
    let deadline: Clock.Instant
    let continuation: CheckedContinuation<Void, Never>
  }

  /// The latest changes of one tenant.
  private struct Ring {
    /// The latest subjects; the change with number n is at n % limit.
    var subjects: [Subject] = []
    /// The number of all changes so far.
    var count: UInt64 = 0
    /// Identifies the ring: its numbers begin at 0, and it doesn't outlast the service or `forget`.
    let run = UInt64.random(in: 1...UInt64.max)
    /// The number of its latest change among those of all tenants.
    var age: UInt64 = 0
    var waiters: [UInt64: Waiter] = [:]

    var now: Place { Place(run: run, number: count) }

    /// Adds a change. Returns whether the ring has grown.
    mutating func add(_ subject: Subject) -> Bool {
      let slot = Int(count % UInt64(ChangeFeed.limit))
      count += 1
      guard slot < subjects.count else {
        subjects.append(subject)
        return true
      }
      subjects[slot] = subject
      return false
    }
  }

  private struct State {
    var rings: [Tenant: Ring] = [:]
    /// The number of subjects in all rings.
    var kept = 0
    /// The number of changes of all tenants so far.
    var count: UInt64 = 0
    var hasEnded = false

    /// Adds a change. Returns the waiters to wake.
    mutating func add(_ subject: Subject, of tenant: Tenant) -> [Waiter] {
      count += 1
      var ring = rings.removeValue(forKey: tenant) ?? Ring()
      if ring.add(subject) { kept += 1 }
      ring.age = count
      defer {
        ring.waiters = [:]
        rings[tenant] = ring
      }
      return Array(ring.waiters.values)
    }

    /// Forgets the tenants that have been quiet for the longest, until at most `most` subjects are left. Returns the
    /// waiters to wake.
    mutating func forgetQuiet(keeping most: Int) -> [Waiter] {
      var woken: [Waiter] = []
      for (tenant, ring) in rings.sorted(by: { $0.value.age < $1.value.age }) where kept > most {
        woken += ring.waiters.values
        kept -= ring.subjects.count
        rings[tenant] = nil
      }
      return woken
    }

    /// Removes and returns the waiters of all tenants that meet a condition.
    mutating func takeWaiters(_ condition: (Waiter) -> Bool) -> [Waiter] {
      var taken: [Waiter] = []
      for tenant in rings.keys {
        for (key, waiter) in rings[tenant]?.waiters ?? [:] where condition(waiter) {
          rings[tenant]?.waiters[key] = nil
          taken.append(waiter)
        }
      }
      return taken
    }
  }

  /// The number of a tenant's changes that are kept: a follower that misses more has to read the list again.
  static let limit = 4096
  /// The number of all tenants' changes that are kept. Beyond it, those of the tenant that has been quiet for the
  /// longest are forgotten.
  static let totalLimit = 64 * limit

  /// The open streams of each client.
  let streams: ClientTally
  private let totalLimit: Int
  private let state = Mutex(State())
  private let nextKey = Atomic<UInt64>(0)
  private let clock: Clock
  private let timer: DeadlineTimer

  /// `totalLimit` is for tests.
  init(streams: ClientTally, totalLimit: Int = ChangeFeed.totalLimit, clock: Clock) {
    (self.streams, self.totalLimit) = (streams, totalLimit)
    (self.clock, timer) = (clock, DeadlineTimer(label: "list events", clock))
  }

  /// Returns the place after a tenant's latest change.
  func now(of tenant: Tenant) -> Place {
    state.withLock { state in
      let ring = state.rings[tenant] ?? Ring()
      state.rings[tenant] = ring
      return ring.now
    }
  }

  /// Whether `endWaits` was called.
  var waitsHaveEnded: Bool { state.withLock { $0.hasEnded } }

  /// Adds the changes of a transaction or a job. Deletions come last, because a deleted recording's job has changed
  /// too.
  func post(_ changes: CatalogChanges) {
    let subjects =
      changes.recordings.map { ($0.tenant, Subject.recording($0.id)) }
      + changes.jobs.map { ($0.tenant, Subject.job($0.id)) }
      + changes.deleted.map { ($0.tenant, Subject.deleted($0.id)) }
    guard !subjects.isEmpty else { return }
    post(subjects)
  }

  /// Adds a change.
  func post(_ subject: Subject, of tenant: Tenant) { post([(tenant, subject)]) }

  private func post(_ subjects: [(Tenant, Subject)]) {
    let waiting = state.withLock { state in
      var woken: [Waiter] = []
      for (tenant, subject) in subjects {
        woken += state.add(subject, of: tenant)
      }
      if state.kept > totalLimit { woken += state.forgetQuiet(keeping: totalLimit * 3 / 4) }
      return woken
    }
    for waiter in waiting { waiter.continuation.resume() }
  }

  /// Returns what has changed for a tenant since `place`, each thing once, in the order of the latest change, at most
  /// `most` of them, and the place after them. nil if the place isn't one of the tenant's, from another run, or so old
  /// that changes may be missing.
  func changes(of tenant: Tenant, since place: Place, most: Int) -> (subjects: [Subject], place: Place)? {
    state.withLock { state in
      guard let ring = state.rings[tenant], place.run == ring.run, place.number <= ring.count,
        ring.count - place.number <= UInt64(Self.limit)
      else { return nil }
      let end = min(ring.count, place.number + UInt64(most))
      var seen: Set<Subject> = []
      var found: [Subject] = []
      for number in (place.number..<end).reversed() {
        let subject = ring.subjects[Int(number % UInt64(Self.limit))]
        if seen.insert(subject).inserted { found.append(subject) }
      }
      return (found.reversed(), Place(run: ring.run, number: end))
    }
  }

  /// Returns when something has changed for a tenant since `place`, `seconds` have passed, `endWaits` is called, or the
  /// caller's Task is canceled.
  func wait(of tenant: Tenant, since place: Place, seconds: Double) async {
    let key = nextKey.wrappingAdd(1, ordering: .relaxed).newValue
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let deadline = clock.instant(after: seconds)
        let isTaken = state.withLock { state in
          guard !state.hasEnded, state.rings[tenant]?.now == place, seconds > 0 else { return false }
          state.rings[tenant]?.waiters[key] = Waiter(deadline: deadline, continuation: continuation)
          return true
        }
        guard isTaken else { return continuation.resume() }
        timer.schedule(by: deadline) { [self] in wakeLate($0) }
        // If the Task was canceled before this point, `onCancel` found no waiter to wake.
        if Task.isCancelled { wake(key, of: tenant) }
      }
    } onCancel: {
      wake(key, of: tenant)
    }
  }

  /// Forgets all changes, because others may have been missed: every follower has to read the list again.
  func forgetAll() {
    let waiting = state.withLock { state in
      defer { (state.rings, state.kept) = ([:], 0) }
      return state.takeWaiters { _ in true }
    }
    for waiter in waiting { waiter.continuation.resume() }
  }

  /// Ends all waits, now and in future, because the service is stopping.
  func endWaits() {
    let waiting = state.withLock { state in
      state.hasEnded = true
      return state.takeWaiters { _ in true }
    }
    for waiter in waiting { waiter.continuation.resume() }
  }

  private func wake(_ key: UInt64, of tenant: Tenant) {
    state.withLock { $0.rings[tenant]?.waiters.removeValue(forKey: key) }?.continuation.resume()
  }

  /// Wakes the followers that have waited long enough. Returns the earliest deadline of the others.
  private func wakeLate(_ now: Clock.Instant) -> Clock.Instant? {
    let (late, next) = state.withLock { state in
      let late = state.takeWaiters { $0.deadline <= now }
      return (late, state.rings.values.flatMap { $0.waiters.values.map(\.deadline) }.min())
    }
    for waiter in late { waiter.continuation.resume() }
    return next
  }
}
