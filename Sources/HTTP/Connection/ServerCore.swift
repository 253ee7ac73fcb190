import Synchronization

/// The state shared by all connections of a server.
final class ServerCore: Sendable {
  let configuration: HTTPServerConfiguration
  let limits: HTTPLimits
  let responder: any HTTPResponder
  let writer: ResponseWriter
  let connections: ConnectionTally
  /// One per loop.
  let tallies: [AnswerTally]

  init(_ configuration: HTTPServerConfiguration, _ responder: any HTTPResponder) {
    self.configuration = configuration
    self.responder = responder
    limits = configuration.limits
    writer = ResponseWriter(defaults: configuration.responseFields)
    tallies = (0..<max(1, configuration.loopCount)).map { _ in AnswerTally() }
    // Leaves 64 descriptors for the rest of the process.
    connections = ConnectionTally(
      limit: max(1, min(limits.connectionCount, ProcessLimits.descriptors - 64)),
      clientLimit: limits.connectionCountPerClient)
  }

  var statistics: ServerStatistics {
    var statistics = ServerStatistics()
    connections.add(to: &statistics)
    for tally in tallies { tally.add(to: &statistics) }
    return statistics
  }

  func closed(_ connection: HTTPConnection) {
    connections.give(back: connection.client)
    connection.worker?.closed(connection)
  }
}

/// Counts the answers of one loop. Only that loop adds, so no core waits for another's cache line; any thread may read.
final class AnswerTally: Sendable {
  private let requests = Atomic<Int>(0)
  private let bytesSent = Atomic<Int>(0)
  private let nanoseconds = Atomic<Int>(0)
  /// By the first digit of the status; 0 if the client left before there was one.
  private let responses = InlineArray<6, Atomic<Int>> { _ in Atomic(0) }

  func countRequest() { Self.add(1, to: requests) }

  func count(_ status: HTTPStatus?, bytesSent: Int64, nanoseconds: UInt64) {
    Self.add(1, to: responses[(status?.code ?? 0) / 100])
    Self.add(Int(bytesSent), to: self.bytesSent)
    Self.add(Int(nanoseconds), to: self.nanoseconds)
  }

  func add(to statistics: inout ServerStatistics) {
    statistics.requests += requests.load(ordering: .relaxed)
    statistics.bytesSent += bytesSent.load(ordering: .relaxed)
    statistics.requestSeconds += Double(nanoseconds.load(ordering: .relaxed)) / 1e9
    for index in responses.indices { statistics.responses[index] += responses[index].load(ordering: .relaxed) }
  }

  private static func add(_ amount: Int, to count: borrowing Atomic<Int>) {
    count.store(count.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
  }
}
