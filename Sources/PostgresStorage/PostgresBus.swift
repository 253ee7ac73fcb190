import Storage
import Synchronization

/// The channel `stillwave` of a database, as the bus of the processes that use it.
///
/// NOTIFY inside a transaction is delivered when it commits, in the order of commits; therefore PostgreSQL lets only
/// one transaction with a NOTIFY commit at a time.
package final class PostgresBus: ChangeBus {
  private let engine: PostgresEngine
  private let settings: PostgresSettings
  private let listener = Mutex<PostgresListener?>(nil)

  /// Creates the bus of an engine's database. Makes no connection.
  package init(_ engine: PostgresEngine, _ settings: PostgresSettings) {
    (self.engine, self.settings) = (engine, settings)
  }

  /// PostgreSQL's limit for payloads, 8,000 bytes with their end.
  package var byteLimit: Int { 7999 }

  /// Seconds since the server last responded while the bus was listening.
  package var secondsSinceHeard: Double? { listener.withLock { $0 }?.secondsSinceHeard }

  /// Sends a message when the transaction commits.
  package func send(_ message: String, in session: any SQLSession) throws(StorageError) {
    _ = try session.rows("SELECT pg_notify('stillwave', ?)", [message])
  }

  /// Sends a message now. The commit doesn't wait for the disk.
  package func send(_ message: String) throws(StorageError) {
    try engine.write(.unflushed) { session in
      _ = try session.rows("SELECT pg_notify('stillwave', ?)", [message])
    }
  }

  /// Begins to listen, with a connection of its own.
  package func listen(_ handler: @escaping @Sendable (BusEvent) -> Void) {
    let listener = PostgresListener(settings, channel: "stillwave") { event in
      switch event {
      case .listening: handler(.connected)
      case .notification(let message): handler(.message(message))
      case .interrupted(let reason): handler(.disconnected(reason: reason))
      }
    }
    self.listener.withLock {
      precondition($0 == nil, "a bus is listened to once")
      $0 = listener
    }
  }

  /// Ends listening.
  package func stopListening() {
    let listener = listener.withLock { listener in
      defer { listener = nil }
      return listener
    }
    listener?.stop()
  }
}
