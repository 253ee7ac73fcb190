import Glibc
import Testing

@testable import HTTP

/// How many of the server's connections one client may hold.
@Suite(.serialized) struct ConnectionTallyTests {
  private let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  /// Returns the status of the next answer, or 0 if the server hangs up.
  private func status(of client: WireClient) -> Int {
    do {
      try client.send(get)
      return try client.answer().status
    } catch { return 0 }
  }

  /// Returns connections that were answered and are still open.
  private func held(_ count: Int, port: UInt16, source: UInt32 = 1) throws -> [WireClient] {
    try (0..<count).map { _ in
      let client = try WireClient(port: port, source: source)
      #expect(status(of: client) == 200)
      return client
    }
  }

  @Test func aClientAtItsLimitIsRefusedWhileAnotherIsServed() async throws {
    let configuration = configured { ($0.limits.connectionCount, $0.limits.connectionCountPerClient) = (60, 3) }
    try await withServer(echo, configuration: configuration) { port, server in
      let mine = try held(3, port: port)
      // These clients neither close nor are admitted, but still leave room for others.
      let refused = try (0..<50).map { _ in try WireClient(port: port) }
      // Which ones are told why depends on the order in which the server accepts them.
      let answers = refused.compactMap { try? $0.answer() }
      #expect(answers.map(\.status) == [Int](repeating: 429, count: 8))
      #expect(answers.allSatisfy { $0.field("Retry-After") == "1" && $0.body.contains("limit_connections") })
      #expect(server.statistics.refusedConnections == 50 && server.statistics.openConnections <= 11)
      let others = try (2...4 as ClosedRange<UInt32>).flatMap { try held(3, port: port, source: $0) }
      for client in mine + others { #expect(status(of: client) == 200) }
    }
  }

  @Test func aFullServerRefusesEveryClient() async throws {
    let configuration = configured { ($0.limits.connectionCount, $0.limits.connectionCountPerClient) = (4, 2) }
    try await withServer(echo, configuration: configuration) { port, _ in
      let all = try held(2, port: port) + held(2, port: port, source: 2)
      try withExtendedLifetime(all) { () throws in
        for source in 1...3 as ClosedRange<UInt32> {
          #expect(status(of: try WireClient(port: port, source: source)) == 503)
        }
      }
    }
  }

  @Test func aClientWithoutALimitCanUseAllConnections() async throws {
    let configuration = configured {
      ($0.limits.connectionCount, $0.limits.connectionCountPerClient) = (9, 2)
      $0.client = { $0.host == "127.0.0.2" ? nil : $0.host }
    }
    try await withServer(echo, configuration: configuration) { port, _ in
      let mine = try held(2, port: port)
      let proxys = try held(7, port: port, source: 2)
      try withExtendedLifetime((mine, proxys)) { () throws in
        #expect(status(of: try WireClient(port: port, source: 2)) == 503)
      }
    }
  }

  /// Ways for a connection to end.
  enum Ending: String, CaseIterable {
    case closed, reset, idle, halfAHead, slowHead, brokenHead, halfABody, slowBody, abandonedAnswer, stalledAnswer,
      refused
  }

  @Test(arguments: Ending.allCases) func aConnectionIsUncountedHoweverItEnds(_ ending: Ending) async throws {
    let configuration = configured {
      ($0.limits.connectionCount, $0.limits.connectionCountPerClient) = (100, 3)
      $0.limits.lingerSeconds = 0.01
      if ending == .idle { $0.limits.idleSeconds = 0.05 }
      if ending == .slowHead { $0.limits.headSeconds = 0.05 }
      if ending == .slowBody { $0.limits.bodyGapSeconds = 0.05 }
      if ending == .stalledAnswer { $0.limits.writeStallSeconds = 0.05 }
    }
    let endless: @Sendable (HTTPRequest) async throws -> HTTPResponse = { request in
      guard request.target.path == "/endless" else { return try await echo(request) }
      return HTTPResponse(.ok, body: .stream(length: nil) { [UInt8](repeating: 0, count: 1 << 20) })
    }
    try await withServer(endless, configuration: configuration) { port, server in
      for round in 1...5 {
        var clients = try (0..<3).map { _ in try WireClient(port: port, receiveBuffer: 64 * 1024) }
        for client in clients { try send(ending, to: client) }
        if ending == .refused {
          for _ in 0..<3 {
            clients.append(try WireClient(port: port))
            #expect(try clients.last?.answer().status == 429)
          }
        }
        if ending == .reset { for client in clients { client.reset() } }
        if ending == .slowHead || ending == .slowBody {
          for client in clients { #expect(try client.answer().status == 408) }
        }
        // Endings caused by the server's clock need the clients to stay open.
        if ![.idle, .stalledAnswer].contains(ending) { clients = [] }
        let count = (ending == .refused ? 6 : 3) * round
        withExtendedLifetime(clients) {
          while server.statistics.acceptedConnections < count || server.statistics.openConnections > 0 { sched_yield() }
        }
      }
      #expect(server.statistics.refusedConnections == (ending == .refused ? 15 : 0))
      if ending == .idle { return }
      let again = try held(3, port: port)
      try withExtendedLifetime(again) { () throws in #expect(status(of: try WireClient(port: port)) == 429) }
    }
  }

  private func send(_ ending: Ending, to client: WireClient) throws {
    switch ending {
    case .closed, .reset, .refused: #expect(status(of: client) == 200)
    case .idle: break
    case .halfAHead, .slowHead: try client.send("GET / HT")
    case .brokenHead:
      try client.send("bad\r\n\r\n")
      #expect(try client.answer().status == 400)
    case .halfABody, .slowBody: try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
    case .abandonedAnswer, .stalledAnswer:
      try client.send("GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
      _ = try client.read(1)
    }
  }

  @Test(
    arguments: [
      (8192, nil, 2048), (100, nil, 25), (40, nil, 16), (16, nil, 16), (4, nil, 4), (100, 7, 7), (5, 90, 5),
    ] as [(Int, Int?, Int)])
  func aClientMayHaveAQuarterUnlessSetOtherwise(limit: Int, clientLimit: Int?, expected: Int) {
    let tally = ConnectionTally(limit: limit, clientLimit: clientLimit)
    var taken = 0
    while tally.take(for: "a") == .serve { taken += 1 }
    #expect(taken == expected)
  }

  @Test func aConnectionClosedAtOnceIsNotCounted() {
    let tally = ConnectionTally(limit: 100, clientLimit: 1)
    #expect(tally.take(for: "a") == .serve)
    for _ in 0..<8 { #expect(tally.take(for: "a") == .refuse(.clientIsFull(limit: 1))) }
    for _ in 0..<500 { #expect(tally.take(for: "a") == .hangUp) }
    #expect(tally.total == 9 && tally.take(for: "b") == .serve)
    for _ in 0..<9 { tally.give(back: "a") }
    tally.give(back: "b")
    #expect(tally.total == 0 && tally.take(for: "a") == .serve)
  }
}
