import Storage
import Synchronization
import Terms

/// A fixed number of places that callers take and give back. If none is free, a caller waits without blocking a thread,
/// and clients take turns.
package final class FairPlaces: Sendable {
  /// Limits on the callers that have a place and on those that wait.
  package struct Limits: Sendable {
    /// The number of callers that can have a place at the same time.
    var places: Int
    /// The number of places one client can have at the same time. With fewer than `places`, another client never has to
    /// wait for this one to give a place back.
    var placesPerClient: Int
    /// How many of those may be for one recording. With fewer than `placesPerClient`, a recording that takes long never
    /// keeps the client from its others.
    var placesPerRecording: Int
    var waiting: Int
    var waitingPerClient: Int

    /// Creates limits.
    package init(
      places: Int, placesPerClient: Int, placesPerRecording: Int = .max, waiting: Int, waitingPerClient: Int
    ) {
      self.places = places
      self.placesPerClient = placesPerClient
      self.placesPerRecording = placesPerRecording
      self.waiting = waiting
      self.waitingPerClient = waitingPerClient
    }
  }

  /// Why a caller didn't get a place.
  package enum Refusal: Error, Equatable {
    /// The number of waiting callers, of all clients, is at its limit.
    case full(limit: Int)
    /// The number of waiting callers of this client is at its limit.
    case clientIsFull(limit: Int)
    /// The caller's Task was canceled while it waited.
    case cancelled
  }

  private struct Waiter {
    let key: UInt64
    let subject: Subject?
    let continuation: CheckedContinuation<Bool, Never>
  }

  /// A recording that a client asks for.
  private struct Subject: Hashable {
    let client: Client
    let recording: RecordingID

    init?(_ client: Client, _ recording: RecordingID?) {
      guard let recording else { return nil }
      (self.client, self.recording) = (client, recording)
    }
  }

  private struct State {
    var free: Int
    /// The number of places that each recording has.
    var taken: [Subject: Int] = [:]
    var queue = FairQueue<Waiter>()
    /// By the waiter's key.
    var tickets: [UInt64: FairQueue<Waiter>.Ticket] = [:]
  }

  /// How long callers waited for their place.
  package let waits = Histogram.ofSeconds()
  private let limits: Limits
  private let clock: Clock
  private let state: Mutex<State>
  private let nextKey = Atomic<UInt64>(0)

  /// Creates places that are all free.
  package init(_ limits: Limits, _ clock: Clock) {
    precondition(limits.places > 0 && limits.placesPerClient > 0, "at least one place, also per client")
    (self.limits, self.clock) = (limits, clock)
    state = Mutex(State(free: limits.places))
  }

  /// The number of waiting callers.
  package var waitingCount: Int { state.withLock { $0.queue.count } }

  /// Waits until the caller has a place, which it gives back with `give`. `recording`: what it works on; nil if that
  /// isn't limited. With `evenIfFull`, the caller is queued even if the queue is full.
  package func take(
    for client: Client, of recording: RecordingID? = nil, evenIfFull: Bool = false
  ) async throws(Refusal) {
    let subject = Subject(client, recording)
    let (key, start) = (nextKey.wrappingAdd(1, ordering: .relaxed).newValue, clock.now)
    var refusal: Refusal?
    let isTaken = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        refusal = enter(Waiter(key: key, subject: subject, continuation: continuation), client, evenIfFull)
        if refusal != nil { return continuation.resume(returning: false) }
        begin()
        // If the Task was canceled before this point, `onCancel` found no waiter to remove.
        if Task.isCancelled { giveUp(key) }
      }
    } onCancel: {
      giveUp(key)
    }
    guard !isTaken else { return waits.add(since: start, by: clock) }
    throw refusal ?? .cancelled
  }

  /// Gives back one of the client's places, taken for `recording`.
  package func give(back client: Client, of recording: RecordingID? = nil) {
    state.withLock { state in
      state.queue.end(client)
      state.free += 1
      guard let subject = Subject(client, recording), let taken = state.taken[subject] else { return }
      state.taken[subject] = taken > 1 ? taken - 1 : nil
    }
    begin()
  }

  private func enter(_ waiter: Waiter, _ client: Client, _ evenIfFull: Bool) -> Refusal? {
    state.withLock { state in
      let waiting = state.queue.count(of: client)
      let isServedAtOnce =
        state.free > 0 && waiting == 0 && state.queue.servedCount(of: client) < limits.placesPerClient
        && mayBegin(waiter, state.taken)
      if !isServedAtOnce, !evenIfFull {
        guard waiting < limits.waitingPerClient else { return .clientIsFull(limit: limits.waitingPerClient) }
        guard state.queue.count < limits.waiting else { return .full(limit: limits.waiting) }
      }
      state.tickets[waiter.key] = state.queue.append(waiter, for: client)
      return nil
    }
  }

  /// Gives free places to the callers whose turn it is.
  private func begin() {
    let begun = state.withLock { state in
      var begun: [Waiter] = []
      while state.free > 0, let next = begin(in: &state) {
        state.free -= 1
        state.tickets[next.key] = nil
        if let subject = next.subject { state.taken[subject, default: 0] += 1 }
        begun.append(next)
      }
      return begun
    }
    for waiter in begun { waiter.continuation.resume(returning: true) }
  }

  /// Takes the next caller whose recording doesn't have all of its places; a client's later callers may pass others.
  private func begin(in state: inout State) -> Waiter? {
    let taken = state.taken
    return state.queue.begin(limit: limits.placesPerClient) { waiting in
      waiting.firstIndex { mayBegin($0, taken) }
    }?.element
  }

  private func mayBegin(_ waiter: Waiter, _ taken: [Subject: Int]) -> Bool {
    guard let subject = waiter.subject else { return true }
    return taken[subject] ?? 0 < limits.placesPerRecording
  }

  private func giveUp(_ key: UInt64) {
    let waiter = state.withLock { state in
      state.tickets.removeValue(forKey: key).flatMap { state.queue.remove($0) }
    }
    waiter?.continuation.resume(returning: false)
  }
}
