import Glibc
import Testing

@testable import HTTP

@Suite("Limits, each a setting", .serialized) struct LimitTests {
  @Test func aMissingBodyIsAnswered408() async throws {
    try await withServer(echo, configuration: configured { $0.limits.bodyGapSeconds = 0.05 }) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
      #expect(try client.answer().status == 408)
    }
  }

  @Test func theDefaultsAreThoseOfTheTable() {
    let limits = HTTPLimits()
    #expect(limits.requestLineBytes == 8 * 1024)
    #expect(limits.headBytes == 16 * 1024 && limits.fieldCount == 100)
    #expect(limits.headSeconds == 10)
    #expect(limits.bodyGapSeconds == 30)
    #expect(limits.bodyRateGraceSeconds == 30 && limits.bodyBytesPerSecond == 1024)
    #expect(limits.writeStallSeconds == 30)
    #expect(limits.writeRateGraceSeconds == 30 && limits.writeBytesPerSecond == 1024)
    #expect(limits.idleSeconds == 60)
    #expect(limits.connectionCount == 8192 && limits.connectionCountPerClient == nil)
    #expect(limits.queuedBytes <= 256 * 1024)
    #expect(limits.backlog == 1024)
    #expect(limits.lingerSeconds == 30 && limits.lingerGapSeconds == 5 && limits.lingerBytes == 512 * 1024 * 1024)
    #expect(limits.chunkExtensionBytes == 256 && limits.trailerBytes == 8 * 1024)
  }

  /// A request with `count` bytes, or fields, of what is limited.
  private static func request(_ part: String, _ count: Int) -> [UInt8] {
    func letters(_ other: Int) -> String { String(repeating: "a", count: count - other) }
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    let text =
      switch part {
      case "the request line": "GET /\(letters(14)) HTTP/1.1\r\nHost: a\r\n\r\n"
      case "the header section": "GET / HTTP/1.1\r\nHost: a\r\nX: \(letters(14))\r\n\r\n"
      case "the number of fields":
        "GET / HTTP/1.1\r\nHost: a\r\n\(String(repeating: "X: 1\r\n", count: count - 1))\r\n"
      case "a chunk's extensions": "\(chunked)1;\(letters(1))\r\nb\r\n0\r\n\r\n"
      default: "\(chunked)0\r\nX: \(letters(7))\r\n\r\n"
      }
    return Array(text.utf8)
  }

  @Test(
    "the last byte or field that a limit allows is taken, and the next is refused",
    arguments: [
      ("the request line", 200, 414), ("the header section", 300, 431), ("the number of fields", 40, 431),
      ("a chunk's extensions", 60, 400), ("trailers", 80, 400),
    ])
  func exactLimits(_ part: String, _ limit: Int, _ status: Int) {
    var limits = HTTPLimits()
    (limits.requestLineBytes, limits.headBytes, limits.fieldCount) = (200, 300, 40)
    (limits.chunkExtensionBytes, limits.trailerBytes) = (60, 80)
    let (last, next) = (Self.request(part, limit), Self.request(part, limit + 1))
    for (last, next) in [([last], [next]), (last.map { [$0] }, next.map { [$0] })] {
      #expect(WireReader(last, limits: limits).requests.count == 1)
      #expect(WireReader(next, limits: limits).refusal == status)
    }
  }

  @Test func aBodyThatArrivesTooSlowlyIsAnswered408() async throws {
    let configuration = configured { ($0.limits.bodyRateGraceSeconds, $0.limits.bodyBytesPerSecond) = (0.05, 1e9) }
    try await withServer(echo, configuration: configuration) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
      #expect(try client.answer().status == 408)
    }
  }

  /// The answer ends somewhere past the kernel's buffers.
  @Test(arguments: ["stalls", "is too slow"]) func aClientThatDoesNotReadItsAnswerIsReset(_ why: String) async throws {
    let configuration = configured {
      if why == "stalls" {
        $0.limits.writeStallSeconds = 0.05
      } else {
        ($0.limits.writeRateGraceSeconds, $0.limits.writeBytesPerSecond) = (0.05, 1e12)
      }
    }
    let cancelled = Signal()
    try await withServer(
      { _ in
        HTTPResponse(
          .ok,
          body: .stream(length: nil) {
            if Task.isCancelled { cancelled.give() }
            return [UInt8](repeating: 0, count: 1 << 20)
          })
      }, configuration: configuration
    ) { port, server in
      let client = try WireClient(port: port, receiveBuffer: 64 * 1024)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try client.read(1)
      let other = try WireClient(port: port)
      while server.statistics.openConnections > 1 {
        try other.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = try other.answer(toHead: true)
      }
      #expect(throws: WireClient.WireError.self) { try client.read(1 << 30) }
    }
  }

  @Test func anIdleConnectionIsClosed() async throws {
    try await withServer(echo, configuration: configured { $0.limits.idleSeconds = 0.05 }) { port, _ in
      let silent = try WireClient(port: port)
      let kept = try WireClient(port: port)
      try kept.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try kept.answer().status == 200)
      #expect(try kept.readToEnd() == "")
      #expect(try silent.readToEnd() == "")
    }
  }

  @Test(arguments: ["Content-Length: 4\r\n\r\nabcd", "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n"])
  func aRoutesLimitOnTheBodyIs413(_ body: String) async throws {
    try await withServer { request in
      text(String(decoding: try await request.body.collect(upTo: 3), as: UTF8.self))
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(body)")
      #expect(try client.answer().status == 413)
    }
  }

  @Test func theBacklogIsTheKernels() throws {
    let listener = try ListeningSocket(host: "127.0.0.1", port: 0, backlog: 7)
    var info = tcp_info()
    var length = socklen_t(MemoryLayout<tcp_info>.size)
    #expect(unsafe getsockopt(listener.descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0)
    // For a listening socket, these two are the number of waiting connections and its limit (tcp(7), tcp_get_info).
    #expect(info.tcpi_sacked == 7)
  }
}
