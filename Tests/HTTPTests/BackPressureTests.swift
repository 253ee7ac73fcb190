import Synchronization
import Testing

@testable import HTTP

@Suite("Line 13: back-pressure", .serialized) struct BackPressureTests {
  @Test func theSocketIsNotReadWhileTheBodyIsNot() async throws {
    let total = 64 * 1024 * 1024
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
      // No more was sent than fits the kernel's buffers on both sides.
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

  @Test func pipelinedAnswersWaitForAClientThatDoesNotRead() async throws {
    let served = Atomic<Int>(0)
    let megabyte = [UInt8](repeating: 0x63, count: 1_000_000)
    try await withServer(
      { request in
        guard request.target.path == "/large" else { return text("small") }
        served.wrappingAdd(1, ordering: .relaxed)
        return HTTPResponse(.ok, body: .bytes(megabyte))
      }, configuration: configured { $0.loopCount = 1 }
    ) { port, _ in
      let stalled = try WireClient(port: port, receiveBuffer: 64 * 1024)
      try stalled.send(String(repeating: "GET /large HTTP/1.1\r\nHost: a\r\n\r\n", count: 50))
      // On the same loop, which has attended to the stalled client by the time these are answered.
      let other = try WireClient(port: port)
      for _ in 0..<100 {
        try other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try other.answer().body == "small")
      }
      // The content of the kernel's buffers on both sides, plus one answer in progress.
      #expect(served.load(ordering: .relaxed) < 12)
      for _ in 0..<50 { #expect(try stalled.answer().body.utf8.count == megabyte.count) }
    }
  }

  @Test func aBodyArrivesInPiecesOfAtMost1MiB() async throws {
    try await withServer { request in
      var longest = 0
      while let piece = try await request.body.read() { longest = max(longest, piece.count) }
      return text("\(longest)")
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n")
      try client.send([UInt8](repeating: 0, count: 4_000_000))
      let longest = try #require(Int(try client.answer().body))
      #expect((1...1024 * 1024).contains(longest))
    }
  }
}
