import Randomness
import Synchronization
import Testing

@testable import HTTP

/// Bodies of clients that are ahead of the handler arrive in pieces of several reads.
@Suite("Pieces of a body", .serialized) struct BodyPieceTests {
  /// One loop that reads `readBytes` at a time.
  private func reading(_ readBytes: Int) -> HTTPServerConfiguration {
    configured { ($0.loopCount, $0.limits.readBytes) = (1, readBytes) }
  }

  /// Letters, digits and a few signs, so that a body is text.
  private static func content(_ count: Int, _ random: inout TestRandom) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 0x2B...0x7A, using: &random) }
  }

  private static func chunk(_ bytes: some Collection<UInt8>) -> [UInt8] {
    Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
  }

  /// How a body is framed.
  enum Framing: String, CaseIterable, CustomTestStringConvertible {
    case length, oneChunk, tinyChunks, mixedChunks

    var testDescription: String { rawValue }

    func request(_ content: [UInt8], _ random: inout TestRandom) -> [UInt8] {
      let head = "POST /x HTTP/1.1\r\nHost: a\r\n"
      if self == .length { return Array("\(head)Content-Length: \(content.count)\r\n\r\n".utf8) + content }
      var bytes = Array("\(head)Transfer-Encoding: chunked\r\n\r\n".utf8)
      var rest = content[...]
      while !rest.isEmpty {
        let most =
          switch self {
          case .tinyChunks: 1
          case .mixedChunks: Bool.random(using: &random) ? 3 : 2000
          default: content.count
          }
        let part = rest.prefix(self == .mixedChunks ? Int.random(in: 1...most, using: &random) : most)
        rest = rest.dropFirst(part.count)
        bytes += BodyPieceTests.chunk(part)
      }
      return bytes + Array("0\r\nX: trailer\r\n\r\n".utf8)
    }
  }

  @Test("every body arrives as it was sent, whatever the reads", arguments: Framing.allCases, [1, 3, 16, 100, 4096])
  func contentIsKept(_ framing: Framing, _ readBytes: Int) async throws {
    var random = TestRandom(for: readBytes)
    // Around the sizes of a read, of a piece, and of several pieces.
    let piece = PieceBuffers.readsPerPiece * readBytes
    let counts = [1, readBytes, piece - 1, piece, piece + 1, piece + readBytes, 2 * piece + 3, 5000]
    let bodies = counts.map { Self.content($0, &random) }
    let requests = bodies.map { framing.request($0, &random) }
    try await withServer(echo, configuration: reading(readBytes)) { port, _ in
      let client = try WireClient(port: port)
      for (request, body) in zip(requests, bodies) {
        // Pipelined, so that what follows the body must be left for the next request.
        try client.send(request + Array("GET /next HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        #expect(try client.answer().body == "/x " + String(decoding: body, as: UTF8.self))
        #expect(try client.answer().body == "/next")
      }
    }
  }

  @Test("a body sent byte by byte arrives as it was sent", arguments: Framing.allCases)
  func singleBytes(_ framing: Framing) async throws {
    var random = TestRandom(for: 0)
    let body = Self.content(300, &random)
    let request = framing.request(body, &random)
    try await withServer(echo, configuration: reading(4)) { port, _ in
      let client = try WireClient(port: port)
      for byte in request { try client.send([byte]) }
      #expect(try client.answer().body == "/x " + String(decoding: body, as: UTF8.self))
    }
  }

  /// Reads until a piece is larger than one read, but at most ten times.
  private static func firstLarge(_ body: RequestBody, _ readBytes: Int) async throws -> Int {
    var largest = 0
    for _ in 0..<10 where largest <= readBytes {
      guard let piece = try await body.read() else { break }
      largest = max(largest, piece.count)
    }
    return largest
  }

  private static let head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n"

  @Test func aClientThatIsAheadGetsPiecesOfSixteenReads() async throws {
    let gate = Signal()
    try await withServer(
      { request in
        await gate.wait()
        var longest = 0
        while let piece = try await request.body.read() { longest = max(longest, piece.count) }
        return text("\(longest) \(request.body.receivedLength)")
      }, configuration: reading(1000)
    ) { port, _ in
      let client = try WireClient(port: port)
      try client.send(Self.head)
      try client.send([UInt8](repeating: 0x61, count: 30_000))
      gate.give()
      #expect(try client.answer().body == "16000 30000")
    }
  }

  @Test func onlyAFewConnectionsOfALoopHaveLargePieces() async throws {
    let gates = (0..<7).map { _ in Signal() }
    let done = Atomic<Int>(0)
    let allHaveRead = Signal()
    try await withServer(
      { request in
        let number = try #require(request.target.path.dropFirst().first?.wholeNumberValue)
        let largest = try await Self.firstLarge(request.body, 1000)
        if done.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue == gates.count { allHaveRead.give() }
        await gates[number].wait()
        while try await request.body.read() != nil {}
        return text("\(largest)")
      }, configuration: reading(1000)
    ) { port, _ in
      let clients = try gates.indices.map { number in
        let client = try WireClient(port: port)
        try client.send(
          Array(Self.head.replacing("/x", with: "/\(number)").utf8) + [UInt8](repeating: 0x61, count: 30_000))
        return client
      }
      await allHaveRead.wait()
      for gate in gates { gate.give() }
      let largest = try clients.map { try #require(Int($0.answer().body)) }
      #expect(largest.count { $0 > 1000 } == PieceBuffers.lentLimit)
      #expect(largest.allSatisfy { $0 >= 900 })
    }
  }

  @Test func aClientThatDisconnectsLeavesItsBufferToOthers() async throws {
    let started = (0..<9).map { _ in Signal() }
    let ended = (0..<9).map { _ in Signal() }
    try await withServer(
      { request in
        let number = try #require(request.target.path.dropFirst().first?.wholeNumberValue)
        let largest = try await Self.firstLarge(request.body, 1000)
        if number == 9 { return text("\(largest)") }
        started[number].give()
        // Ends when the handler is canceled because its client has disconnected.
        await Signal().wait()
        ended[number].give()
        _ = try await request.body.read()
        return text("never")
      }, configuration: reading(1000)
    ) { port, _ in
      for number in started.indices {
        let client = try WireClient(port: port)
        try client.send(Array(Self.head.replacing("/x", with: "/\(number)").utf8))
        try client.send([UInt8](repeating: 0x61, count: 20_000))
        await started[number].wait()
        client.reset()
        // The service may notice the disconnection only after it has accepted the next client.
        await ended[number].wait()
      }
      let client = try WireClient(port: port)
      try client.send(Array(Self.head.replacing("/x", with: "/9").utf8) + [UInt8](repeating: 0x61, count: 30_000))
      #expect(try #require(Int(client.answer().body)) > 1000)
    }
  }

  @Test func aBodyCanBeReadBesideTheHandler() async throws {
    try await withServer { request in
      let total = await withCheckedContinuation { done in
        request.body.startReader {
          var count = 0
          while let piece = try? await request.body.read() { count += piece.count }
          done.resume(returning: count)
        }
      }
      return text("\(total)")
    } test: { port, _ in
      let client = try WireClient(port: port)
      for count in [0, 1, 30_000] {
        try client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: \(count)\r\n\r\n")
        try client.send([UInt8](repeating: 0x61, count: count))
        #expect(try client.answer().body == "\(count)")
      }
    }
  }

  @Test func aLargeBodyCutShortIsNeverASuccess() async throws {
    try await withServer(echo, configuration: reading(100)) { port, _ in
      for count in [1599, 1600, 1601, 29_999] {
        let client = try WireClient(port: port)
        try client.send(Array(Self.head.utf8) + [UInt8](repeating: 0x61, count: count))
        client.shutdownOutput()
        #expect(try client.answer().status == 400, "\(count)")
      }
    }
  }
}
