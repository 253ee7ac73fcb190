import Synchronization
import Testing

@testable import HTTP

/// Answers by a closure.
private struct Answering: HTTPResponder {
  let body: @Sendable (HTTPRequest) async throws -> HTTPResponse

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    do {
      return try await body(request)
    } catch let error as RequestBodyError {
      return error.problem.response()
    } catch {
      return HTTPResponse(.internalServerError)
    }
  }
}

private func text(_ text: String, _ status: HTTPStatus = .ok) -> HTTPResponse {
  HTTPResponse(status, fields: ["Content-Type": "text/plain"], body: .bytes(Array(text.utf8)))
}

/// A configuration that differs from the default.
private func configured(_ change: (inout HTTPServerConfiguration) -> Void) -> HTTPServerConfiguration {
  var configuration = HTTPServerConfiguration()
  change(&configuration)
  return configuration
}

/// Runs a server on a free port for the time of `test`.
private func withServer(
  _ handler: @escaping @Sendable (HTTPRequest) async throws -> HTTPResponse,
  configuration: HTTPServerConfiguration = HTTPServerConfiguration(),
  test: (UInt16, HTTPServer) async throws -> Void
) async throws {
  var configuration = configuration
  configuration.port = 0
  configuration.loopCount = 2
  let server = HTTPServer(configuration, responder: Answering(body: handler))
  let address = try server.start()
  do {
    try await test(address.port, server)
  } catch {
    await server.stop(within: 0)
    throw error
  }
  await server.stop(within: 0)
  #expect(server.statistics.openConnections == 0)
}

/// Says the path, and the body where there is one.
@Sendable private func echo(_ request: HTTPRequest) async throws -> HTTPResponse {
  let body = try await request.body.collect(upTo: 1 << 20)
  return text(request.target.path + (body.isEmpty ? "" : " " + String(decoding: body, as: UTF8.self)))
}

/// A signal from one side to the other, given once.
private final class Signal: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream() }

  func give() { continuation.finish() }
  func wait() async { for await _ in stream {} }
}

@Suite(.serialized) struct ServerTests {
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

  @Test func headHasTheFieldsOfGetAndNoContent() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
      let head = try client.answer(toHead: true)
      #expect(head.field("Content-Length") == "4")
      #expect(try client.answer().body == "/next")
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

  @Test func aClientIsToldToContinueWhenTheHandlerReads() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      #expect(try client.answer().status == 100)
      try client.send("abc")
      #expect(try client.answer().body == "/ abc")
    }
  }

  @Test func aClientIsNotToldToContinueWhenTheAnswerIsKnown() async throws {
    let limited: @Sendable (HTTPRequest) async throws -> HTTPResponse = { request in
      request.body.limit(to: 2)
      _ = try await request.body.read()
      return text("read")
    }
    try await withServer(limited) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      let answer = try client.answer()
      #expect(answer.status == 413)
      #expect(answer.field("Connection") == "close")
    }
  }

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

  @Test func aStreamIsSentInChunksOrByItsLength() async throws {
    try await withServer { request in
      let rest = Mutex(["a", "", "bcd"])
      return HTTPResponse(
        .ok,
        body: .stream(length: request.target.path == "/length" ? 4 : nil) {
          rest.withLock { $0.isEmpty ? nil : Array($0.removeFirst().utf8) }
        })
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET /chunks HTTP/1.1\r\nHost: a\r\n\r\nGET /length HTTP/1.1\r\nHost: a\r\n\r\n")
      let chunked = try client.answer()
      #expect(chunked.body == "abcd")
      #expect(chunked.field("Transfer-Encoding") == "chunked")
      let counted = try client.answer()
      #expect(counted.body == "abcd")
      #expect(counted.field("Content-Length") == "4")
      try client.send("GET /chunks HTTP/1.0\r\n\r\n")
      #expect(try client.readToEnd().hasSuffix("\r\n\r\nabcd"))
    }
  }

  @Test(arguments: [nil, Int64(100)]) func aStreamThatFailsIsNotTakenForAWholeOne(_ length: Int64?) async throws {
    try await withServer { _ in
      let first = Atomic<Bool>(true)
      return HTTPResponse(
        .ok,
        body: .stream(length: length) {
          if first.exchange(false, ordering: .relaxed) { return Array("abc".utf8) }
          throw CancellationError()
        })
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(throws: WireClient.WireError.self) { try client.answer() }
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

  @Test func everyResponseHasItsCommonFieldsAndIsReported() async throws {
    let records = Mutex<[RequestRecord]>([])
    let reported = Signal()
    let configuration = configured { configuration in
      configuration.responseFields = ["X-Content-Type-Options": "nosniff", "Content-Type": "never/this"]
      configuration.onCompleted = { record in
        let count = records.withLock { records in
          records.append(record)
          return records.count
        }
        if count == 3 { reported.give() }
      }
    }
    try await withServer(echo, configuration: configuration) { port, _ in
      let client = try WireClient(port: port)
      try client.send(
        "POST /p HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine-1\r\ntraceparent: 00-ab\r\nContent-Length: 3\r\n\r\nabc")
      let first = try client.answer()
      #expect(first.field("X-Request-Id") == "mine-1")
      #expect(first.field("X-Content-Type-Options") == "nosniff")
      #expect(first.field("Content-Type") == "text/plain")
      #expect(first.field("Date").flatMap(HTTPDate.init) != nil)
      try client.send("GET /q HTTP/1.1\r\nHost: a\r\nX-Request-Id: not sane\r\n\r\nbad\r\n\r\n")
      #expect(try client.answer().field("X-Request-Id")?.utf8.count == 13)
      let refusal = try client.answer()
      #expect(refusal.field("X-Request-Id") != nil)
      #expect(refusal.field("X-Content-Type-Options") == "nosniff")
      await reported.wait()
      let all = records.withLock { $0 }
      #expect(all.map(\.status) == [.ok, .ok, .badRequest])
      #expect(all.map(\.path) == ["/p", "/q", nil])
      #expect(all[0].requestID == "mine-1")
      #expect(all[0].traceparent == "00-ab")
      #expect(all[0].bytesReceived == 3)
      #expect(all[0].bytesSent == first.head.utf8.count + first.body.utf8.count)
    }
  }

  @Test func aStoppingServerFinishesWhatRunsAndLetsNobodyIn() async throws {
    let started = Signal()
    let gate = Signal()
    try await withServer { _ in
      started.give()
      await gate.wait()
      return text("finished")
    } test: { port, server in
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

  @Test func aFileIsSentWholeAndInParts() async throws {
    #expect(throws: FileContentError.self) { try FileContent(path: "/nowhere") }
    #expect(throws: FileContentError.self) { try FileContent(path: "/tmp") }
    let target = try TemporaryFile(bytes: (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 3) })
    try await withServer { request in
      let file = try FileContent(path: target.path)
      return HTTPResponse(
        Representation(
          body: .file(file), contentType: "audio/wav", etag: "\"1\"", cacheControl: "private", acceptsRanges: true),
        for: request)
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      let length = 3_000_000
      var head: [UInt8] = []
      while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try client.read(1) }
      #expect(try client.read(length) == target.bytes)
      let ranged = try WireClient(port: port)
      try ranged.send("GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=1000000-1000299\r\n\r\n")
      head = []
      while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try ranged.read(1) }
      #expect(String(decoding: head, as: UTF8.self).contains("Content-Range: bytes 1000000-1000299/3000000"))
      #expect(try ranged.read(300) == Array(target.bytes[1_000_000..<1_000_300]))
      try ranged.send("GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-2,600-602\r\n\r\n")
      let several = try ranged.answer()
      #expect(several.status == 206)
      #expect(several.body.contains("Content-Range: bytes 600-602/3000000\r\n\r\n"))
    }
  }
}
