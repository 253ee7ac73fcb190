import Synchronization

/// What all connections of a server share.
final class ServerCore: Sendable {
  let configuration: HTTPServerConfiguration
  let limits: HTTPLimits
  let responder: any HTTPResponder
  let writer: ResponseWriter
  /// The configured number of connections, and never so many that the process runs out of descriptors for the rest.
  let connectionLimit: Int

  private let open = Atomic<Int>(0)
  private let accepted = Atomic<Int>(0)
  private let refused = Atomic<Int>(0)
  private let requests = Atomic<Int>(0)

  init(_ configuration: HTTPServerConfiguration, _ responder: any HTTPResponder) {
    self.configuration = configuration
    self.responder = responder
    limits = configuration.limits
    writer = ResponseWriter(defaults: configuration.responseFields)
    connectionLimit = max(1, min(limits.connectionCount, ProcessLimits.descriptors - 64))
  }

  var openCount: Int { open.load(ordering: .relaxed) }

  var statistics: ServerStatistics {
    ServerStatistics(
      openConnections: openCount, acceptedConnections: accepted.load(ordering: .relaxed),
      refusedConnections: refused.load(ordering: .relaxed), requests: requests.load(ordering: .relaxed))
  }

  /// Counts a connection in. False where it is one too many.
  func admit() -> Bool {
    accepted.wrappingAdd(1, ordering: .relaxed)
    let isWithin = open.wrappingAdd(1, ordering: .relaxed).newValue <= connectionLimit
    if !isWithin { refused.wrappingAdd(1, ordering: .relaxed) }
    return isWithin
  }

  func countOut() { open.wrappingSubtract(1, ordering: .relaxed) }

  func countRequest() { requests.wrappingAdd(1, ordering: .relaxed) }

  func closed(_ connection: HTTPConnection, on loop: EventLoop) {
    countOut()
    connection.worker?.closed(connection)
  }
}
