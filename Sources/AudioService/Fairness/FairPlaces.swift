import Synchronization

/// Places that callers take and give back. Who finds none waits without a thread, and clients take turns.
final class FairPlaces: Sendable {
  struct Limits: Sendable {
    /// Callers that have a place at once.
    var places: Int
    /// Places that one client has at once. Less than `places`, so that another client need not wait for an end.
    var placesPerClient: Int
    var waiting: Int
    var waitingPerClient: Int
  }

  /// Why a caller got no place.
  enum Refusal: Error, Equatable {
    /// As many wait as may, of all clients.
    case full(limit: Int)
    /// As many of this client wait as may.
    case clientIsFull(limit: Int)
    /// The caller's Task was cancelled while it waited.
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

  private let limits: Limits
  private let state: Mutex<State>
  private let nextKey = Atomic<UInt64>(0)

  init(_ limits: Limits) {
    precondition(limits.places > 0 && limits.placesPerClient > 0, "somebody gets a place")
    self.limits = limits
    state = Mutex(State(free: limits.places))
  }

  /// Callers that wait.
  var waitingCount: Int { state.withLock { $0.queue.count } }

  /// Returns when the caller has a place. The place is given back with `give`. `evenIfFull`: it waits however many do.
  func take(for client: Client, evenIfFull: Bool = false) async throws(Refusal) {
    let key = nextKey.wrappingAdd(1, ordering: .relaxed).newValue
    var refusal: Refusal?
    let isTaken = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        refusal = enter(Waiter(key: key, continuation: continuation), client, evenIfFull)
        if refusal != nil { return continuation.resume(returning: false) }
        begin()
        // A cancellation that came before found nobody to wake.
        if Task.isCancelled { giveUp(key) }
      }
    } onCancel: {
      giveUp(key)
    }
    guard !isTaken else { return }
    throw refusal ?? .cancelled
  }

  /// The place of a caller of this client is free again.
  func give(back client: Client) {
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

  /// Lets in whoever is next, for as long as there are places.
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
