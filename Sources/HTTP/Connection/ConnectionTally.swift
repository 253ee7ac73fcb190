import Synchronization

/// Counts the open connections: all of them, and those of each client. What `take` counts is given back once.
final class ConnectionTally: Sendable {
  /// What becomes of a new connection.
  enum Decision: Equatable {
    case serve
    /// Counted like any other until it has its answer.
    case refuse(Refusal)
    /// Not counted.
    case hangUp
  }

  enum Refusal: Equatable {
    /// All clients together have as many as the server takes.
    case serverIsFull
    /// This client does.
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

  /// Refusals that are answered at a time; past that clients are only hung up on.
  private static let refusalsAtOnce = 32
  /// Of these, those of one client: a refused connection may take seconds to go, and must not fill the server.
  private static let refusalsAtOnceOfAClient = 8

  /// `clientLimit`: nil for a quarter of the limit, but at least 16.
  init(limit: Int, clientLimit: Int?) {
    self.limit = limit
    self.clientLimit = clientLimit ?? max(limit / 4, min(limit, 16))
  }

  /// Open now.
  var total: Int { state.withLock { $0.total } }

  func add(to statistics: inout ServerStatistics) {
    let state = state.withLock { $0 }
    statistics.openConnections = state.total
    statistics.acceptedConnections = state.accepted
    statistics.refusedConnections = state.refused
  }

  /// Counts a connection in, unless it is to be hung up on. `client`: nil for one without a limit of its own.
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

  /// Counts one less.
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

extension ConnectionTally.Refusal {
  var problem: Problem {
    switch self {
    case .serverIsFull:
      Problem(
        .serviceUnavailable, code: "too_many_connections", detail: "The server has as many clients as it can serve.",
        fields: ["Retry-After": "1"])
    case .clientIsFull(let limit):
      Problem(
        .tooManyRequests, code: "limit_connections",
        detail: "You have \(limit) connections open, as many as one client may have. Close some, or try again later.",
        fields: ["Retry-After": "1"])
    }
  }
}
