import Testing

@testable import HTTP

@Suite("Accepting many connections") struct AcceptTests {
  /// A crowd that connects at once must neither wait for one client's turn after another, nor keep connected clients
  /// from theirs.
  @Test func aTurnAcceptsManyConnectionsButNotAll() async throws {
    let core = ServerCore(configured { $0.limits.connectionCountPerClient = 1000 }, NoResponder())
    let listener = try ListeningSocket(host: "127.0.0.1", port: 0, backlog: 1024)
    let loop = try EventLoop.take(index: 0, readBytes: 4096, clock: .system)
    // The loop doesn't watch the listener, so that each turn is the test's.
    let worker = LoopWorker(loop: loop, core: core, tally: core.tallies[0], listener: listener)
    loop.start()
    let crowd = try (0..<150).map { _ in try WireClient(port: listener.address.port) }
    var accepted: [Int] = []
    for _ in 0..<4 {
      loop.queue.sync { worker.handle(.input) }
      accepted.append(core.statistics.openConnections)
    }
    #expect(accepted == [64, 128, 150, 150])
    listener.refuse()
    worker.stop(within: 0)
    await worker.ended()
    #expect(core.statistics.openConnections == 0)
    for client in crowd { #expect(try client.readToEnd() == "") }
  }
}

private struct NoResponder: HTTPResponder {
  func respond(to request: HTTPRequest) -> HTTPAnswer { .now(HTTPResponse(.noContent)) }
}
