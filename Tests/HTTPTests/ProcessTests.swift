import Synchronization
import Testing

@testable import HTTP

/// Returns a handler that signals when it has begun, and ends when it is canceled.
private func waiting(
  _ started: Signal, untilCancelled cancelled: Signal
) -> @Sendable (HTTPRequest) async throws -> HTTPResponse {
  { _ in
    started.give()
    await withTaskCancellationHandler {
      await cancelled.wait()
    } onCancel: {
      cancelled.give()
    }
    return text("late")
  }
}

@Suite("Line 12: the process", .serialized) struct ProcessTests {
  @Test func aStoppingServerFinishesRunningRequestsAndAcceptsNoMore() async throws {
    let started = Signal()
    let gate = Signal()
    // A single loop: once the idle connection is closed, the busy one has been notified too.
    let configuration = configured { $0.loopCount = 1 }
    let handler: @Sendable (HTTPRequest) async throws -> HTTPResponse = { _ in
      started.give()
      await gate.wait()
      return text("finished")
    }
    try await withServer(handler, configuration: configuration) { port, server in
      let idle = try WireClient(port: port)
      let busy = try WireClient(port: port)
      try busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      await started.wait()
      async let stopped: Void = server.stop(within: 60)
      #expect(try idle.readToEnd() == "")
      gate.give()
      let answer = try busy.answer()
      #expect(answer.body == "finished")
      #expect(answer.field("Connection") == "close")
      #expect(try busy.readToEnd() == "")
      await stopped
      #expect(throws: WireClient.WireError.self) { try WireClient(port: port) }
    }
  }

  @Test func aStoppingServerCancelsRequestsThatTakeTooLong() async throws {
    let started = Signal()
    let cancelled = Signal()
    try await withServer(waiting(started, untilCancelled: cancelled)) { port, server in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      await started.wait()
      await server.stop(within: 0.01)
      await cancelled.wait()
    }
  }

  @Test func aServerStopsThoughHandlersOnAllItsLoopsHang() async throws {
    let (started, ended) = ([Signal(), Signal()], [Signal(), Signal()])
    let release = Signal()
    try await withServer(
      { request in
        let number = request.target.path == "/0" ? 0 : 1
        started[number].give()
        await release.wait()
        ended[number].give()
        return text("late")
      }, configuration: configured { $0.loopCount = 2 }
    ) { port, server in
      let clients = try (0..<2).map { _ in try WireClient(port: port) }
      for (number, client) in clients.enumerated() { try client.send("GET /\(number) HTTP/1.1\r\nHost: a\r\n\r\n") }
      for signal in started { await signal.wait() }
      await server.stop(within: 0.01)
      release.give()
      for signal in ended { await signal.wait() }
    }
  }

  @Test func manyExcessConnectionsAreClosedAtOnce() async throws {
    try await withServer(echo, configuration: configured { $0.limits.connectionCount = 1 }) { port, server in
      let first = try WireClient(port: port)
      try first.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try first.answer().status == 200)
      // These clients neither read nor close, so the answers to the first 32 of them stay pending.
      let others = try (0..<50).map { _ in try WireClient(port: port) }
      let answers = others.map { (try? $0.answer().status) ?? 0 }
      #expect(answers.allSatisfy { $0 == 503 || $0 == 0 })
      #expect(answers.contains(503))
      #expect(server.statistics.refusedConnections == 50)
    }
  }

  @Test func theGracePeriodEndsEvenIfAnotherConnectionCloses() async throws {
    let started = Signal()
    let cancelled = Signal()
    try await withServer(waiting(started, untilCancelled: cancelled), configuration: configured { $0.loopCount = 1 }) {
      port, server in
      let idle = try WireClient(port: port)
      let busy = try WireClient(port: port)
      try busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      await started.wait()
      await server.stop(within: 0.05)
      #expect(try idle.readToEnd() == "")
    }
  }

  @Test func aStalledUploadIsCleanedUpBeforeTheServerStops() async throws {
    let started = Signal()
    let isClean = Atomic<Bool>(false)
    try await withServer { request in
      _ = try await request.body.read()
      started.give()
      defer { isClean.store(true, ordering: .sequentiallyConsistent) }
      while try await request.body.read() != nil {}
      return text("whole")
    } test: { port, server in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
      await started.wait()
      await server.stop(within: 0.05)
      let wasClean = isClean.load(ordering: .sequentiallyConsistent)
      #expect(wasClean)
      let answer = try client.answer()
      #expect(answer.status == 408)
      #expect(answer.field("Connection") == "close")
    }
  }

  @Test func aListenerReportsThatItRefuses() throws {
    let listener = try ListeningSocket(host: "127.0.0.1", port: 0, backlog: 8)
    if case .none = listener.accept() {} else { Issue.record("nobody is waiting") }
    listener.refuse()
    if case .refused = listener.accept() {} else { Issue.record("the loop would go on watching") }
  }
}
