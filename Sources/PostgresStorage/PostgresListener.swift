// Receives NOTIFY on one connection, which it has for itself.
//
// The server delivers a notification when its transaction commits, once, to the sessions that listen at that time. So
// after each (re)connection, when LISTEN is in effect, the listener reports `.listening`: whatever was committed since
// the connection was lost may have been missed and must be read from the tables.
//
// A connection can die without a sign. Every `pingSeconds`, the listener asks the server for a response; without one
// within `silenceSeconds`, it reconnects. A session delivers what was committed before a statement at the latest with
// the statement's response, so what was committed before the last statement with a response was sent has been reported:
// `secondsSinceHeard` counts from then. ListenerState decides all this.
//
// LISTEN needs a direct connection: a pooler that shares sessions between transactions loses it.

import Dispatch
import Storage
import Synchronization
import Terms

/// What a listener reports.
package enum PostgresListenerEvent: Equatable, Sendable {
  /// Notifications arrive from now on. Earlier changes may have been missed: read the tables.
  case listening
  /// The payload of a notification.
  case notification(String)
  /// The connection was lost; `.listening` will follow. `reason` contains no password.
  case interrupted(reason: String)
}

/// Listens on a channel and reconnects with increasing waits. Thread-safe.
package final class PostgresListener: @unchecked Sendable {
  // Unchecked because everything that changes is confined to `queue`, except `proved`.

  private let settings: PostgresSettings
  private let channel: String
  private let pingSeconds: Double
  private let handler: @Sendable (PostgresListenerEvent) -> Void
  private let queue = DispatchQueue(label: "PostgresListener")
  private let started: Clock.Instant
  /// Everything that was committed before this moment has been reported, in seconds since `started`; nil if the
  /// listener isn't listening.
  private let proved = Mutex<Double?>(nil)

  private var connection: PostgresConnection?
  private var source: (any DispatchSourceRead)?
  private var timer: Clock.Alarm?
  private var backoff = PostgresListener.newBackoff
  private var state: ListenerState
  private var isStopped = false

  private static var newBackoff: Backoff { Backoff(firstSeconds: 0.05, limitSeconds: 5) }

  /// Starts listening. `handler` is called on a queue of the listener's own, one call at a time; it must be brief.
  ///
  /// `channel` is a lowercase identifier. `silenceSeconds` should be greater than `pingSeconds`.
  package init(
    _ settings: PostgresSettings, channel: String, pingSeconds: Double = 1, silenceSeconds: Double = 4,
    handler: @escaping @Sendable (PostgresListenerEvent) -> Void
  ) {
    precondition(channel.utf8.allSatisfy { $0 == 95 || (97...122).contains($0) }, "a channel is a lowercase identifier")
    self.settings = settings
    started = settings.clock.now
    self.channel = channel
    self.pingSeconds = pingSeconds
    state = ListenerState(silenceSeconds: silenceSeconds)
    self.handler = handler
    settings.clock.async(on: queue) { self.connect() }
  }

  /// Seconds since the moment up to which everything that was committed has been reported; nil if the listener isn't
  /// listening.
  package var secondsSinceHeard: Double? { proved.withLock { $0 }.map { now - $0 } }

  private var now: Double { settings.clock.seconds(since: started) }

  /// Stops listening and waits for a call of the handler in progress. Must be called once, before the last reference
  /// goes, and not by the handler.
  package func stop() {
    queue.sync {
      isStopped = true
      disconnect()
    }
  }

  // MARK: Connecting

  private func connect() {
    dispatchPrecondition(condition: .onQueue(queue))
    guard !isStopped else { return }
    do {
      let connection = try PostgresConnection(settings)
      let asked = now
      // A listener is idle outside of transactions; only its responses are waited for.
      try connection.run(script: "LISTEN \(channel)")
      self.connection = connection
      backoff = Self.newBackoff
      watch(connection)
      take(.listening(since: asked))
      // What came with the response to LISTEN makes the socket readable no more.
      read()
    } catch {
      handler(.interrupted(reason: "\(error)"))
      connectLater()
    }
  }

  private func connectLater() {
    settings.clock.after(backoff.seconds(), on: queue) { [weak self] in self?.connect() }
  }

  private func watch(_ connection: PostgresConnection) {
    let source = DispatchSource.makeReadSource(fileDescriptor: connection.descriptor, queue: queue)
    source.setEventHandler { [weak self] in self?.read() }
    // The descriptor must stay open until dispatch has let go of it.
    source.setCancelHandler { withExtendedLifetime(connection) {} }
    source.activate()
    self.source = source
    tickLater()
  }

  private func tickLater() {
    timer = settings.clock.after(pingSeconds, on: queue) { [weak self] in
      guard let self, connection != nil else { return }
      tickLater()
      take(.tick)
    }
  }

  private func disconnect() {
    dispatchPrecondition(condition: .onQueue(queue))
    proved.withLock { $0 = nil }
    source?.cancel()
    timer?.cancel()
    (source, timer, connection) = (nil, nil, nil)
  }

  // MARK: Connected

  private func read() {
    dispatchPrecondition(condition: .onQueue(queue))
    guard let connection else { return }
    let (payloads, responded) = connection.drain()
    take(.received(payloads, response: responded))
    if connection.isBroken { take(.lost) }
  }

  private func take(_ event: ListenerState.Event) {
    for action in state.on(event, at: now) {
      switch action {
      case .announce: handler(.listening)
      case .deliver(let payload): handler(.notification(payload))
      case .prove(let time): proved.withLock { $0 = time }
      case .ping: do { try connection?.send(script: "SELECT 1") } catch { take(.lost) }
      case .reconnect(let silent):
        disconnect()
        guard !isStopped else { return }
        let silence = silent.map { "the server has not responded for \(Int($0.rounded())) seconds" }
        handler(.interrupted(reason: silence ?? "the connection was lost"))
        connectLater()
      }
    }
  }
}
