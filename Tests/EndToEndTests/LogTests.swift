import Foundation
import Testing

/// Lines are collected before they are written, but none is lost.
struct LogTests {
  private func sendRequests(to server: TestServer) throws {
    server.client.followsContract = false
    for number in 0..<50 { _ = try server.client.get("/healthz/\(number)") }
  }

  private func paths(in log: String) -> [String] {
    log.split(separator: "\n").compactMap { try? JSON(Array($0.utf8))["path"].string }
  }

  @Test func aServiceThatStopsHasLoggedEveryRequest() throws {
    let server = try TestServer()
    try sendRequests(to: server)
    try server.stop()
    #expect(paths(in: try server.command.finish().errors) == (0..<50).map { "/healthz/\($0)" })
  }

  @Test("a service that crashes has logged every request before", arguments: [SIGILL, SIGTRAP, SIGSEGV, SIGABRT])
  func crash(signal: Int32) throws {
    // Swift's backtracer survives signals that another process sends.
    let server = try TestServer(under: ["/usr/bin/env", "SWIFT_BACKTRACE=enable=no"])
    try sendRequests(to: server)
    let finished = try server.crash(by: signal)
    #expect(finished.status != 0)
    // The last response may have come before its line.
    #expect(Array(paths(in: finished.errors).prefix(49)) == (0..<49).map { "/healthz/\($0)" })
  }
}
