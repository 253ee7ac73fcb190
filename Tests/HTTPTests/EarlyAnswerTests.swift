import Testing

@testable import HTTP

@Suite("Line 10: an answer while the body still comes", .serialized) struct EarlyAnswerTests {
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

  /// Such a client sends its whole body before it reads, and would see a reset if the server didn't read the rest.
  @Test func aClientWhoseBodyOf110MBIsRefusedReadsThat() async throws {
    try await withServer { request in
      request.body.limit(to: 100_000_000)
      _ = try await request.body.read()
      return text("taken")
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 110000000\r\n\r\n")
      let piece = [UInt8](repeating: 0x61, count: 1_000_000)
      for _ in 0..<110 { try client.send(piece) }
      let answer = try client.answer()
      #expect(answer.status == 413 && answer.body.contains("100000000"))
      #expect(try client.readToEnd() == "")
    }
  }

  @Test func lingeringEndsAfterItsTimeOrItsBytes() async throws {
    for change: @Sendable (inout HTTPServerConfiguration) -> Void in [
      { $0.limits.lingerSeconds = 0.05 }, { $0.limits.lingerBytes = 1024 * 1024 },
    ] {
      try await withServer({ _ in text("no", .notFound) }, configuration: configured(change)) { port, _ in
        let client = try WireClient(port: port)
        try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
        #expect(try client.answer().status == 404)
        // The server has closed before a gigabyte can be sent.
        #expect(throws: WireClient.WireError.self) {
          for _ in 0..<1000 { try client.send([UInt8](repeating: 0, count: 1_000_000)) }
        }
      }
    }
  }

  @Test func aSmallRemainderIsReadAndTheConnectionKept() async throws {
    try await withServer { _ in
      text("no", .notFound)
    } test: { port, server in
      let client = try WireClient(port: port)
      for _ in 0..<3 {
        try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n")
        try client.send([UInt8](repeating: 0x61, count: 65536))
        #expect(try client.answer().status == 404)
      }
      #expect(server.statistics.acceptedConnections == 1)
    }
  }

  /// Our half is shut when the client's data and its end arrive together; that isn't a reset.
  @Test func bytesAfterARequestDoNotDestroyItsAnswer() async throws {
    let content = [UInt8](repeating: 0x41, count: 2_000_000)
    try await withServer { _ in
      HTTPResponse(.ok, fields: ["Connection": "close"], body: .bytes(content))
    } test: { port, _ in
      for _ in 0..<4 {
        let client = try WireClient(port: port, receiveBuffer: 64 * 1024)
        try client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        // The answer has begun: everything that fits into the sockets' buffers is on its way.
        _ = try client.read(1)
        client.cork()
        try client.send([UInt8](repeating: 0x42, count: 3000))
        client.shutdownOutput()
        #expect(try client.readToEnd().utf8.count > content.count)
      }
    }
  }
}
