/// Carries messages between the processes that share a catalog. An engine of a database that only one process uses has
/// none.
package protocol ChangeBus: AnyObject, Sendable {
  /// The maximum length of a message, in bytes of UTF-8.
  var byteLimit: Int { get }

  /// Seconds since the bus last proved that it delivers; nil if it is disconnected. What was sent earlier than that has
  /// been delivered.
  var secondsSinceHeard: Double? { get }

  /// Sends a message to every listener if the transaction commits.
  func send(_ message: String, in session: any SQLSession) throws(StorageError)

  /// Sends a message to every listener now. It may be lost in a crash of the database.
  func send(_ message: String) throws(StorageError)

  /// Begins to deliver messages, in the order of their commits, including this process's own. `handler` is called on a
  /// queue of the bus, one call at a time, and must be brief. Call this once.
  func listen(_ handler: @escaping @Sendable (BusEvent) -> Void)

  /// Ends the delivery. Does nothing if it hasn't begun.
  func stopListening()
}

/// What a bus reports.
package enum BusEvent: Sendable, Equatable {
  /// Messages arrive from now on. Earlier ones may have been missed: read the tables.
  case connected
  /// A message.
  case message(String)
  /// The connection was lost; `.connected` will follow.
  case disconnected(reason: String)
}
