import Synchronization
import Testing

@testable import HTTP

@Suite("Line 8: connections", .serialized) struct ConnectionTests {
  @Test func aConnectionIsKeptAndRequestsAreAnsweredInTurn() async throws {
    try await withServer(echo) { port, server in
      let client = try WireClient(port: port)
      for path in ["/a", "/b", "/c"] {
        try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
        let answer = try client.answer()
        #expect(answer.status == 200)
        #expect(answer.body == path)
        #expect(answer.field("Connection") == nil)
      }
      #expect(server.statistics.acceptedConnections == 1)
      #expect(server.statistics.requests == 3)
    }
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      let requests = (0..<200).map {
        $0 % 2 == 0
          ? "GET /\($0) HTTP/1.1\r\nHost: a\r\n\r\n"
          : "POST /\($0) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n"
      }
      try client.send(requests.joined())
      for index in 0..<200 { #expect(try client.answer().body == "/\(index)" + (index % 2 == 0 ? "" : " xy")) }
    }
  }

  @Test func aRequestSplitAtEveryByteIsTheSameRequest() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      for byte in "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".utf8 {
        try client.send([byte])
      }
      #expect(try client.answer().body == "/p abc")
    }
  }

  @Test func headReturnsTheFieldsOfGetWithoutContent() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
      let head = try client.answer(toHead: true)
      #expect(head.field("Content-Length") == "4")
      #expect(try client.answer().body == "/next")
    }
  }

  @Test(arguments: [
    "HEAD / HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "HEAD /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD / HTTP/2.0\r\nHost: a\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n",
    "HEAD /" + String(repeating: "a", count: 10_000) + " HTTP/1.1\r\nHost: a\r\n\r\n",
  ])
  func headIsRefusedWithoutContent(_ request: String) async throws {
    try await withServer(echo) { port, _ in
      for splits in [false, true] {
        let client = try WireClient(port: port)
        if splits {
          for byte in request.utf8.prefix(8) { try client.send([byte]) }
          try client.send(Array(request.utf8.dropFirst(8)))
        } else {
          try client.send(request)
        }
        let answer = try client.readToEnd()
        #expect(answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.1 505"))
        #expect(answer.hasSuffix("\r\n\r\n") && answer.contains("\r\nContent-Length: "))
      }
    }
  }

  @Test func anEmptyLineInPiecesDoesNotBeginARequest() async throws {
    try await withServer(
      echo,
      configuration: configured {
        $0.limits.headSeconds = 0.05; $0.limits.idleSeconds = 0.3
      }
    ) {
      port, _ in
      let client = try WireClient(port: port)
      try client.send("\r")
      // Closed silently after having been idle.
      #expect(try client.readToEnd().isEmpty)
    }
  }

  @Test func http10IsClosedOnUnlessItAsksToBeKept() async throws {
    try await withServer(echo) { port, _ in
      let kept = try WireClient(port: port)
      try kept.send("GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n")
      #expect(try kept.answer().field("Connection") == "keep-alive")
      let last = try kept.readToEnd()
      #expect(last.hasSuffix("/b"))
      #expect(last.contains("Connection: close"))
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

  @Test func nothingAfterAMalformedHeadIsServed() async throws {
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

  @Test(arguments: ["close", "CLOSE", "keep-alive, Close", "x ,\tclose,"])
  func aConnectionClosesIfItsOptionsSaySo(_ options: String) async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET /a HTTP/1.1\r\nHost: a\r\nConnection: \(options)\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")
      let answer = try client.answer()
      #expect(answer.field("Connection") == "close")
      #expect(try client.readToEnd() == "")
    }
  }

  @Test(arguments: [HTTPStatus.noContent, .notModified]) func noContentFollowsA204OrA304(_ status: HTTPStatus)
    async throws
  {
    try await withServer { _ in
      HTTPResponse(status, body: .bytes(Array("abc".utf8)))
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      let answers = try client.readToEnd()
      #expect(!answers.contains("abc"))
      #expect(!answers.contains("Content-Length") && !answers.contains("Transfer-Encoding"))
      #expect(answers.split(separator: "\r\n").count { $0.hasPrefix("HTTP/1.1 \(status.code) ") } == 2)
    }
  }

  @Test func aHalfClosedClientThatWaitsLongIsAnswered() async throws {
    let started = Signal()
    let gate = Signal()
    try await withServer { _ in
      started.give()
      await gate.wait()
      return text("news")
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET /poll HTTP/1.1\r\nHost: a\r\n\r\n")
      client.shutdownOutput()
      await started.wait()
      gate.give()
      #expect(try client.answer().body == "news")
      #expect(try client.readToEnd() == "")
    }
  }
}
