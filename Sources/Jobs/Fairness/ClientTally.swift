import Synchronization

/// Counts how much of a limited resource each client holds.
package final class ClientTally: Sendable {
  /// Why a client can't take more.
  package enum Refusal: Error, Equatable {
    /// All clients together have reached their limit.
    case full(limit: Int)
    /// This client has reached its limit.
    case clientIsFull(limit: Int)
  }

  private struct State {
    var total = 0
    var held: [Client: Int] = [:]
  }

  private let limit: Int
  private let clientLimit: @Sendable (Client) -> Int
  private let state = Mutex(State())

  /// - Parameters:
  ///   - limit: for all clients together.
  ///   - clientLimit: for one client.
  package init(limit: Int, clientLimit: @escaping @Sendable (Client) -> Int) {
    (self.limit, self.clientLimit) = (limit, clientLimit)
  }

  /// Throws if `take` would throw.
  func check(_ client: Client) throws(Refusal) {
    let clientLimit = clientLimit(client)
    if let found = state.withLock({ refusal(of: client, clientLimit, $0) }) { throw found }
  }

  /// Counts one more for the client. Throws if that would exceed a limit.
  func take(_ client: Client) throws(Refusal) {
    let clientLimit = clientLimit(client)
    let found = state.withLock { state -> Refusal? in
      let found = refusal(of: client, clientLimit, state)
      if found == nil { Self.add(client, &state) }
      return found
    }
    if let found { throw found }
  }

  /// Counts one more regardless of the limits, for something that already exists.
  func add(_ client: Client) { state.withLock { Self.add(client, &$0) } }

  /// Counts one fewer.
  func give(back client: Client) {
    state.withLock { state in
      guard let held = state.held[client] else { preconditionFailure("the client holds nothing to give back") }
      state.total -= 1
      state.held[client] = held > 1 ? held - 1 : nil
    }
  }

  private static func add(_ client: Client, _ state: inout State) {
    state.total += 1
    state.held[client, default: 0] += 1
  }

  private func refusal(of client: Client, _ clientLimit: Int, _ state: State) -> Refusal? {
    if state.held[client] ?? 0 >= clientLimit { return .clientIsFull(limit: clientLimit) }
    return state.total >= limit ? .full(limit: limit) : nil
  }
}
