import Foundation
import Glibc

/// The cost of clients that do little: the service's memory, and the delay of a normal client meanwhile.
struct Clients {
  let server: Server
  let id: String

  func run(_ table: inout Table) throws {
    raiseDescriptorLimit()
    try measureIdle(&table)
    try measureStalled(
      "100 stalled readers of the audio file", "GET /v1/recordings/\(id)/audio HTTP/1.1\r\nHost: localhost\r\n\r\n",
      &table)
    try measureStalled(
      "100 stalled readers, 50 long slices asked by each",
      String(
        repeating: "GET /v1/recordings/\(id)/waveform?scale=256&bits=8 HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 50),
      &table)
    try measureSlowUploads(&table)
  }

  /// Half of them have sent half a head.
  private func measureIdle(_ table: inout Table) throws {
    let before = MemoryWatch.anonymous(server.processIdentifier)
    var connections: [Int32] = []
    defer { for connection in connections { close(connection) } }
    for number in 0..<5000 {
      let connection = try server.client.connect()
      connections.append(connection)
      if number % 2 == 0 { try server.client.write(Array("GET / HTTP/1.1\r\nHo".utf8), to: connection) }
    }
    let slowest = try slowestPoll()
    let grown = Double(MemoryWatch.anonymous(server.processIdentifier) - before) / 1024
    table.row("memory of 5,000 idle or half-sent connections", "\(rounded(grown)) MB", "< 20 MB", grown < 20)
    table.row("slowest of 100 polls beside them", "\(rounded(slowest)) ms", "≤ 5 ms", slowest <= 5)
  }

  private func measureStalled(_ name: String, _ request: String, _ table: inout Table) throws {
    let before = MemoryWatch.anonymous(server.processIdentifier)
    var connections: [Int32] = []
    defer { for connection in connections { close(connection) } }
    for _ in 0..<100 {
      let connection = try server.client.connect()
      connections.append(connection)
      try server.client.write(Array(request.utf8), to: connection)
    }
    // Settled once every answer fills its socket and the memory no longer grows.
    var grown = 0.0
    var calm = 0
    while calm < 20 {
      // Sampled, because nothing signals that another process has stopped growing.
      usleep(50_000)
      let now = Double(MemoryWatch.anonymous(server.processIdentifier) - before) / 1024
      calm = now > grown + 0.1 ? 0 : calm + 1
      grown = max(grown, now)
    }
    let slowest = try slowestPoll()
    table.row("memory of \(name)", "\(rounded(grown)) MB", "< 8 MB", grown < 8)
    table.row("slowest of 100 polls beside them", "\(rounded(slowest)) ms", "≤ 5 ms", slowest <= 5)
  }

  private func measureSlowUploads(_ table: inout Table) throws {
    var connections: [Int32] = []
    defer { for connection in connections { close(connection) } }
    let head = "POST /v1/recordings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nRIFF"
    for _ in 0..<200 {
      let connection = try server.client.connect()
      connections.append(connection)
      try server.client.write(Array(head.utf8), to: connection)
    }
    var slowest = 0.0
    for round in 0..<100 {
      for connection in connections where round % 10 == 0 { try server.client.write([0x41], to: connection) }
      slowest = max(slowest, try poll())
    }
    table.row("slowest of 100 polls beside 200 slow uploads", "\(rounded(slowest)) ms", "≤ 4 ms", slowest <= 4)
  }

  private func poll() throws -> Double {
    let answer = try server.client.get("/healthz")
    guard answer.status == 200 else { throw BenchmarkFailure(what: "/healthz was answered \(answer.status)") }
    return answer.seconds * 1000
  }

  private func slowestPoll() throws -> Double {
    _ = try poll()
    return try (0..<100).map { _ in try poll() }.max() ?? 0
  }

  private func raiseDescriptorLimit() {
    var limit = rlimit()
    _ = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
