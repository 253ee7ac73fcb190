import Synchronization

/// Counts open connections, in total and per client. Each connection that `take` counts is given back once.
final class ConnectionTally: Sendable {
  /// What to do with a new connection.
  enum Decision: Equatable {
    case serve
    /// Counted like any other connection until it has been answered.
    case refuse(Refusal)
    /// Not counted.
    case hangUp
  }

  enum Refusal: Equatable {
    /// All clients together have as many connections as the server allows.
    case serverIsFull
    /// This client has as many connections as one client may have.
    case clientIsFull(limit: Int)
  }

  private struct State {
    var total = 0
    var accepted = 0
    var refused = 0
    var held: [String: Int] = [:]
  }

  private let limit: Int
  private let clientLimit: Int
  private let state = Mutex(State())

  /// Number of refusals that are answered at once; further clients are disconnected without an answer.
  private static let refusalsAtOnce = 32
  /// Number of refusals of one client that are answered at once: a refused connection may take seconds to close, and
  /// must not fill the server.
  private static let refusalsAtOnceOfAClient = 8

  /// Creates a tally. `clientLimit`: nil for a quarter of `limit`, but at least 16.
  init(limit: Int, clientLimit: Int?) {
    self.limit = limit
    self.clientLimit = clientLimit ?? max(limit / 4, min(limit, 16))
  }

  /// Number of open connections.
  var total: Int { state.withLock { $0.total } }

  func add(to statistics: inout ServerStatistics) {
    let state = state.withLock { $0 }
    statistics.openConnections = state.total
    statistics.acceptedConnections = state.accepted
    statistics.refusedConnections = state.refused
  }

  /// Counts a connection, unless the decision is to hang up. `client`: nil for a connection exempt from the limit per
  /// client.
  func take(for client: String?) -> Decision {
    state.withLock { state in
      let decision = decision(for: client, state)
      state.accepted += 1
      if decision != .serve { state.refused += 1 }
      if decision == .hangUp { return .hangUp }
      state.total += 1
      if let client { state.held[client, default: 0] += 1 }
      return decision
    }
  }

  /// Removes a connection from the count.
  func give(back client: String?) {
    state.withLock { state in
      state.total -= 1
      guard let client else { return }
      guard let held = state.held[client] else { preconditionFailure("what is given back was taken") }
      state.held[client] = held > 1 ? held - 1 : nil
    }
  }

  private func decision(for client: String?, _ state: State) -> Decision {
    guard state.total < limit + Self.refusalsAtOnce else { return .hangUp }
    guard state.total < limit else { return .refuse(.serverIsFull) }
    guard let client, let held = state.held[client], held >= clientLimit else { return .serve }
    return held < clientLimit + Self.refusalsAtOnceOfAClient ? .refuse(.clientIsFull(limit: clientLimit)) : .hangUp
  }
}
