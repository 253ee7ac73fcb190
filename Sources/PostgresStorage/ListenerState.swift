// A listener's connection, as a state machine without a socket or a clock.
//
//   event          actions, in this order
//   ───────────────────────────────────────────────────────────────────────────────────────────────────
//   listening      announce; prove the time at which LISTEN was sent
//   received       deliver each payload; if the ping's response came after them, prove the ping's time
//   tick           reconnect if nothing was proved for too long; else ping, unless a response is awaited
//   lost           reconnect
//
// What is proved is the time at which a ping was sent: its response comes after all notifications that were committed
// before the server received it. The time at which the response is read proves nothing, because the response may have
// waited in the socket while the process was stopped. A time is proved only after the notifications before it have been
// handled, so that a reader who sees the new time also sees what they changed.

/// The state of a listener. Times are in seconds since any fixed moment.
struct ListenerState: Sendable {
  enum Event: Equatable, Sendable {
    /// LISTEN, sent at this time, is in effect.
    case listening(since: Double)
    /// Payloads were read, and maybe the response to a ping after them.
    case received([String], response: Bool)
    /// It's time to check the connection.
    case tick
    /// The connection is gone.
    case lost
  }

  enum Action: Equatable, Sendable {
    /// Report that notifications arrive from now on, and that earlier ones may have been missed.
    case announce
    /// Report a notification.
    case deliver(String)
    /// From now on, everything that was committed before this time counts as reported.
    case prove(Double)
    /// Send a statement.
    case ping
    /// Connect again; nil if the connection was lost, else the seconds for which nothing was proved.
    case reconnect(silentFor: Double?)
  }

  private let silenceSeconds: Double
  private var provedAt: Double?
  /// When the ping was sent whose response is awaited.
  private var pingedAt: Double?

  init(silenceSeconds: Double) { self.silenceSeconds = silenceSeconds }

  /// Takes in an event and returns what to do, in order.
  mutating func on(_ event: Event, at now: Double) -> [Action] {
    switch event {
    case .listening(let time):
      (provedAt, pingedAt) = (time, nil)
      return [.announce, .prove(time)]
    case .received(let payloads, let response):
      var actions = payloads.map(Action.deliver)
      if response, let pingedAt {
        provedAt = pingedAt
        actions.append(.prove(pingedAt))
        self.pingedAt = nil
      }
      return actions
    case .tick:
      guard let provedAt else { return [] }
      guard now - provedAt <= silenceSeconds else { return reconnect(silentFor: now - provedAt) }
      guard pingedAt == nil else { return [] }
      pingedAt = now
      return [.ping]
    case .lost: return provedAt == nil ? [] : reconnect(silentFor: nil)
    }
  }

  private mutating func reconnect(silentFor seconds: Double?) -> [Action] {
    (provedAt, pingedAt) = (nil, nil)
    return [.reconnect(silentFor: seconds)]
  }
}
