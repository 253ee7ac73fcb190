import Dispatch
import Synchronization
import Terms

/// A bounded number of connections, which callers use one at a time. Thread-safe.
///
/// Calls block: for a connection, which is given to callers in the order in which they came, and for the server. A
/// connection is made by the first caller that needs one and finds none idle. After a failure to connect, all callers
/// wait longer and longer, each by a different part, until one succeeds.
package final class PostgresPool: Sendable {
  /// The settings of all connections.
  package let settings: PostgresSettings
  private let state = Mutex(State())

  private struct State {
    var idle: [PostgresConnection] = []
    /// Connections that are idle, in use, or being made.
    var places = 0
    var waiting: [Waiter] = []
    var isClosed = false
    var backoff = PostgresPool.newBackoff
    var nextAttempt: Clock.Instant?
    var lastReason = ""
  }

  /// A caller in line.
  private final class Waiter: @unchecked Sendable {
    // Unchecked because `grant` is read and written only under the pool's lock.
    let semaphore = DispatchSemaphore(value: 0)
    var grant: Grant?
  }

  private enum Grant {
    case connection(PostgresConnection)
    /// A place to make a connection for.
    case place
    case closed
  }

  private static var newBackoff: Backoff { Backoff(firstSeconds: 0.05, limitSeconds: 5) }

  /// Creates a pool. Makes no connection.
  package init(_ settings: PostgresSettings) { self.settings = settings }

  /// The pool's connections and callers, for metrics.
  package struct Load: Equatable, Sendable {
    /// Connections, including those being made.
    package var connections: Int
    /// Connections that no caller uses.
    package var idle: Int
    /// Callers waiting for a connection.
    package var waiting: Int
  }

  /// The current load.
  package var load: Load {
    state.withLock { Load(connections: $0.places, idle: $0.idle.count, waiting: $0.waiting.count) }
  }

  /// Closes idle connections now and the others when their callers return them. Later calls throw `.closed`.
  package func close() {
    let (idle, waiting) = state.withLock { state in
      state.isClosed = true
      let both = (state.idle, state.waiting)
      for waiter in state.waiting { waiter.grant = .closed }
      state.places -= state.idle.count
      (state.idle, state.waiting) = ([], [])
      return both
    }
    for waiter in waiting { waiter.semaphore.signal() }
    // Closing sends a message, so it happens outside of the lock.
    withExtendedLifetime(idle) {}
  }

  // MARK: Connections

  /// Waits for a connection that is alive as far as is known here. Return it with `give`.
  func take() throws(PostgresError) -> PostgresConnection {
    let deadline = Deadline(seconds: settings.connectionWaitSeconds, by: settings.clock)
    while true {
      switch try grant(deadline) {
      case .connection(let connection) where connection.looksAlive(): return connection
      case .connection: return try connect(deadline)
      case .place: return try connect(deadline)
      case .closed: throw .closed
      }
    }
  }

  /// Returns a connection to the pool, which drops it if it is broken.
  func give(_ connection: PostgresConnection) {
    if connection.looksAlive() { pass(.connection(connection)) } else { dropPlace() }
  }

  private func grant(_ deadline: Deadline) throws(PostgresError) -> Grant {
    let waiter = Waiter()
    let grant: Grant? = try state.withLock { state throws(PostgresError) in
      guard !state.isClosed else { throw .closed }
      if state.waiting.isEmpty {
        if let connection = state.idle.popLast() { return .connection(connection) }
        if state.places < settings.connectionCount {
          state.places += 1
          return .place
        }
      }
      guard state.waiting.count < settings.waitingCallers else { throw .noFreeConnection(waitedSeconds: 0) }
      state.waiting.append(waiter)
      return nil
    }
    if let grant { return grant }
    _ = settings.clock.wait(for: waiter.semaphore, seconds: deadline.secondsLeft)
    let late: Grant? = state.withLock { state in
      // It may have come at the last moment.
      if waiter.grant == nil { state.waiting.removeAll { $0 === waiter } }
      return waiter.grant
    }
    guard let late else { throw .noFreeConnection(waitedSeconds: settings.connectionWaitSeconds) }
    return late
  }

  /// Hands a connection or a place to the first caller in line.
  private func pass(_ grant: Grant) {
    let first: Waiter? = state.withLock { state in
      if state.isClosed {
        state.places -= 1
        return nil
      }
      guard !state.waiting.isEmpty else {
        if case .connection(let connection) = grant { state.idle.append(connection) } else { state.places -= 1 }
        return nil
      }
      let waiter = state.waiting.removeFirst()
      waiter.grant = grant
      return waiter
    }
    first?.semaphore.signal()
  }

  private func dropPlace() { pass(.place) }

  /// Connects for a place that the caller has, or gives the place up.
  private func connect(_ deadline: Deadline) throws(PostgresError) -> PostgresConnection {
    do {
      while true {
        let (wait, reason) = state.withLock { state in
          (state.nextAttempt.map { -settings.clock.seconds(since: $0) } ?? 0, state.lastReason)
        }
        if wait > deadline.secondsLeft {
          settings.clock.pause(deadline.secondsLeft)
          throw PostgresError.cannotConnect(reason: reason)
        }
        settings.clock.pause(wait)
        if let connection = try attempt() { return connection }
      }
    } catch {
      dropPlace()
      throw (error as? PostgresError) ?? .closed
    }
  }

  /// Tries to connect. Returns nil if another attempt may succeed.
  private func attempt() throws(PostgresError) -> PostgresConnection? {
    if state.withLock({ $0.isClosed }) { throw .closed }
    do {
      let connection = try PostgresConnection(settings)
      state.withLock { state in
        state.backoff = Self.newBackoff
        state.nextAttempt = nil
      }
      return connection
    } catch {
      let reason: String
      switch error {
      case .cannotConnect(let text), .connectionLost(_, let text): reason = text
      case .statement(let failure): reason = failure.message
      default: throw error
      }
      state.withLock { state in
        state.lastReason = reason
        // Callers whose attempts fail at the same time count as one.
        if state.nextAttempt.map({ $0 <= settings.clock.now }) ?? true {
          state.nextAttempt = settings.clock.instant(after: state.backoff.seconds())
        }
      }
      return nil
    }
  }
}
