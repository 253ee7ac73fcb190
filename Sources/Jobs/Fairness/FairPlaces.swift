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
    var waiting: Int
    var waitingPerClient: Int

    /// Creates limits.
    package init(places: Int, placesPerClient: Int, waiting: Int, waitingPerClient: Int) {
      self.places = places
      self.placesPerClient = placesPerClient
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
    let continuation: CheckedContinuation<Bool, Never>
  }

  private struct State {
    var free: Int
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

  /// Waits until the caller has a place, which it gives back with `give`. With `evenIfFull`, the caller is queued even
  /// if the queue is full.
  package func take(for client: Client, evenIfFull: Bool = false) async throws(Refusal) {
    let (key, start) = (nextKey.wrappingAdd(1, ordering: .relaxed).newValue, clock.now)
    var refusal: Refusal?
    let isTaken = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        refusal = enter(Waiter(key: key, continuation: continuation), client, evenIfFull)
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

  /// Gives back one of the client's places.
  package func give(back client: Client) {
    state.withLock { state in
      state.queue.end(client)
      state.free += 1
    }
    begin()
  }

  private func enter(_ waiter: Waiter, _ client: Client, _ evenIfFull: Bool) -> Refusal? {
    state.withLock { state in
      let waiting = state.queue.count(of: client)
      let isServedAtOnce =
        state.free > 0 && waiting == 0 && state.queue.servedCount(of: client) < limits.placesPerClient
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
      while state.free > 0, let next = state.queue.begin(limit: limits.placesPerClient) {
        state.free -= 1
        state.tickets[next.element.key] = nil
        begun.append(next.element)
      }
      return begun
    }
    for waiter in begun { waiter.continuation.resume(returning: true) }
  }

  private func giveUp(_ key: UInt64) {
    let waiter = state.withLock { state in
      state.tickets.removeValue(forKey: key).flatMap { state.queue.remove($0) }
    }
    waiter?.continuation.resume(returning: false)
  }
}
