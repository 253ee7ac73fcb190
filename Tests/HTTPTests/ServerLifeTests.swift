import Synchronization
import Testing

@testable import HTTP

/// Bad clients, slow ones, too many, and the end.
@Suite(.serialized) struct ServerLifeTests {
  @Test func anEarlyErrorReachesAClientThatSendsEverythingFirst() async throws {
    try await withServer { _ in
      text("no", .notFound)
    } test: { port, _ in
      for length in ["Content-Length: 16777216\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n1000000\r\n"] {
        let client = try WireClient(port: port)
        try client.send("POST /unknown HTTP/1.1\r\nHost: a\r\n\(length)")
        try client.send([UInt8](repeating: 0x61, count: 16 * 1024 * 1024))
        let answer = try client.answer()
        #expect(answer.status == 404)
        #expect(answer.field("Connection") == "close")
        #expect(try client.readToEnd() == "")
      }
    }
  }

  @Test func theSocketIsNotReadWhileNobodyReadsTheBody() async throws {
    let total = 256 * 1024 * 1024
    let gate = Signal()
    let counting: @Sendable (HTTPRequest) async throws -> HTTPResponse = { request in
      await gate.wait()
      var count = 0
      while let piece = try await request.body.read() { count += piece.count }
      return text("\(count)")
    }
    try await withServer(counting) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(total)\r\n\r\n")
      // No more is taken than the kernel's buffers hold on both sides.
      let sent = client.sendWithoutWaiting([UInt8](repeating: 0, count: total))
      #expect(sent < 32 * 1024 * 1024)
      gate.give()
      try client.send([UInt8](repeating: 0, count: total - sent))
      #expect(try client.answer().body == "\(total)")
    }
  }

  @Test func aSlowReaderStopsTheProducer() async throws {
    let produced = Atomic<Int>(0)
    let pieces = 1024
    try await withServer { _ in
      HTTPResponse(
        .ok,
        body: .stream(length: nil) {
          guard produced.wrappingAdd(1, ordering: .relaxed).newValue <= pieces else { return nil }
          return [UInt8](repeating: 0x62, count: 64 * 1024)
        })
    } test: { port, _ in
      let client = try WireClient(port: port, receiveBuffer: 64 * 1024)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      for received in 1...60 {
        _ = try client.read(1024 * 1024)
        let ahead = produced.load(ordering: .relaxed) * 64 * 1024 - received * 1024 * 1024
        #expect(ahead < 16 * 1024 * 1024)
      }
    }
  }

  @Test func aDisconnectCancelsTheHandler() async throws {
    let started = Signal()
    let cancelled = Signal()
    try await withServer { _ in
      started.give()
      await withTaskCancellationHandler {
        await cancelled.wait()
      } onCancel: {
        cancelled.give()
      }
      return text("late")
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      await started.wait()
      client.reset()
      await cancelled.wait()
    }
  }

  @Test func aHalfClosedClientIsAnswered() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nHost: a\r\n\r\n")
      client.shutdownOutput()
      #expect(try client.answer().body == "/a abc")
      #expect(try client.answer().body == "/b")
      #expect(try client.readToEnd() == "")
    }
  }

  @Test(arguments: ["Content-Length: 5\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"])
  func aBodyCutShortIsNeverASuccess(_ rest: String) async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(rest)")
      client.shutdownOutput()
      #expect(try client.answer().status == 400)
      #expect(try client.readToEnd() == "")
    }
  }

  @Test func aMalformedHeadIsRefusedAndNothingBehindItIsServed() async throws {
    let served = Atomic<Int>(0)
    try await withServer { _ in
      served.wrappingAdd(1, ordering: .relaxed)
      return text("ok")
    } test: { port, _ in
      let client = try WireClient(port: port)
      let good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
      try client.send(good + "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n" + good)
      #expect(try client.answer().status == 200)
      let refusal = try client.answer()
      #expect(refusal.status == 400)
      #expect(refusal.field("Content-Type") == "application/problem+json")
      #expect(refusal.field("Connection") == "close")
      #expect(try client.readToEnd() == "")
      #expect(served.load(ordering: .relaxed) == 1)
    }
  }

  @Test func aHeadThatDoesNotComeIsAnswered408() async throws {
    try await withServer(echo, configuration: configured { $0.limits.headSeconds = 0.05 }) { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET / HT")
      #expect(try client.answer().status == 408)
    }
  }

  @Test func aBodyThatDoesNotComeIsAnswered408() async throws {
    try await withServer(echo, configuration: configured { $0.limits.bodyGapSeconds = 0.05 }) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
      #expect(try client.answer().status == 408)
    }
  }

  @Test func oneConnectionTooManyIsToldToComeBack() async throws {
    try await withServer(echo, configuration: configured { $0.limits.connectionCount = 1 }) { port, server in
      let first = try WireClient(port: port)
      try first.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try first.answer().status == 200)
      let second = try WireClient(port: port)
      let answer = try second.answer()
      #expect(answer.status == 503)
      #expect(answer.field("Retry-After") == "1")
      #expect(server.statistics.refusedConnections == 1)
      try first.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try first.answer().body == "/b")
    }
  }

  @Test func aStoppingServerFinishesWhatRunsAndLetsNobodyIn() async throws {
    let started = Signal()
    let gate = Signal()
    // One loop, so that whoever sees the idle connection closed knows that the busy one has been told too.
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

  @Test func aStoppingServerBreaksOffWhatTakesTooLong() async throws {
    let started = Signal()
    let cancelled = Signal()
    try await withServer { _ in
      started.give()
      await withTaskCancellationHandler {
        await cancelled.wait()
      } onCancel: {
        cancelled.give()
      }
      return text("late")
    } test: { port, server in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      await started.wait()
      await server.stop(within: 0.01)
      await cancelled.wait()
    }
  }
}
