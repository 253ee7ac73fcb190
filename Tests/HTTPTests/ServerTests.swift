import Glibc
import Synchronization
import Terms
import Testing

@testable import HTTP

@Suite("Answers over a socket", .serialized) struct ServerTests {
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

  @Test(arguments: [nil, Int64(100)]) func aFailedStreamLooksIncompleteAndIsReported(_ length: Int64?) async throws {
    let failures = Mutex<[String]>([])
    let configuration = configured {
      $0.onBrokenOff = { request, error in failures.withLock { $0.append("\(request.target.path): \(error)") } }
    }
    @Sendable func answer(_ request: HTTPRequest) -> HTTPResponse {
      let first = Atomic<Bool>(true)
      return HTTPResponse(
        .ok,
        body: .stream(length: length) {
          if first.exchange(false, ordering: .relaxed) { return Array("abc".utf8) }
          throw CancellationError()
        })
    }
    try await withServer(answer, configuration: configuration) { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(throws: WireClient.WireError.self) { try client.answer() }
      #expect(failures.withLock { $0 } == ["/a: CancellationError()"])
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
      // A request's body references its connection, the connection the server, and the server this list: a reference
      // cycle.
      records.withLock { $0 = [] }
    }
  }

  @Test("a file's last reference closes nothing itself, because closing a large deleted file takes long")
  func closing() throws {
    func isOpen(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) >= 0 }
    var descriptor: Int32 = -1
    do {
      FileClosing.queue.suspend()
      defer { FileClosing.queue.resume() }
      do {
        let target = try TemporaryFile(bytes: [1])
        descriptor = try FileContent(path: target.path).slice(0..<1).descriptor
      }
      #expect(isOpen(descriptor))
    }
    FileClosing.queue.sync {}
    // Another test may have opened one with its number.
    #expect(Self.path(of: descriptor)?.hasSuffix(" (deleted)") != true)
  }

  private static func path(of descriptor: Int32) -> String? {
    var path = [CChar](repeating: 0, count: 4096)
    let count = unsafe readlink("/proc/self/fd/\(descriptor)", &path, 4096)
    return count < 0 ? nil : String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
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

  @Test func truncatingAFileWhileItIsSentEndsOnlyThatConnection() async throws {
    let length = 64 << 20
    let target = try TemporaryFile(bytes: [1])
    try #require(unsafe truncate(target.path, length) == 0)
    try await withServer { request in
      guard request.target.path == "/" else { return text("alive") }
      return HTTPResponse(.ok, fields: [:], body: .file(try FileContent(path: target.path)))
    } test: { port, server in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      // More than this has been sent by now, but the sockets' buffers hold far less than the whole file.
      _ = try client.read(1000)
      try #require(unsafe truncate(target.path, 0) == 0)
      #expect(throws: (any Error).self) { try client.read(length) }
      let other = try WireClient(port: port)
      try other.send("GET /other HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try other.answer().body == "alive")
    }
  }
}
