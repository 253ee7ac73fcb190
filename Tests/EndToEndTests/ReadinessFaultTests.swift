import Foundation
import Testing

@testable import Sounds

/// `/readyz` of the real program while something is taken away and given back.
struct ReadinessFaultTests {
  private func run(_ arguments: String...) throws -> Bool {
    try Command("/usr/bin/env", arguments).finish().status == 0
  }

  /// Waits until `/readyz` has the expected code, "ready" if there is none; it's checked once a second.
  private func expect(_ code: String, _ server: TestServer, sourceLocation: SourceLocation = #_sourceLocation) throws {
    var last = ""
    let came = try eventually {
      let answer = try server.client.get("/readyz")
      last = answer.status == 200 ? "ready" : answer.json["code"].string ?? "\(answer.status)"
      return last == code
    }
    #expect(came, "\(last)", sourceLocation: sourceLocation)
  }

  @Test("SIGTERM ends a service whose writes wait for the catalog and whose worker is frozen")
  func blockedStop() throws {
    let server = try TestServer("--grace-period", "0.5")
    let id = try #require(try server.client.upload(Clip.tone.bytes, name: "a.wav")["id"].string)
    // Another program takes SQLite's lock for writing (byte 120 of the index of its log) and keeps it. Each write waits
    // five seconds for it, and for those before.
    let index = unsafe open(server.data + "/catalog.sqlite-shm", O_RDWR)
    defer { close(index) }
    var lock = flock(l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 120, l_len: 1, l_pid: 0)
    let isHeld = eventually { unsafe fcntl(index, F_SETLK, &lock) == 0 }
    #expect(isHeld)
    for number in 0..<12 {
      let wire = try Wire(port: server.client.port)
      let body = #"{"name":"\#(number)"}"#
      wire.send(
        "PATCH /v1/recordings/\(id) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
    try expect("catalog_busy", server)
    let finished = try server.crash(by: SIGTERM)
    #expect(finished.status == 1 && finished.errors.contains("the service did not stop in time"), "\(finished)")
  }

  @Test func aProcessThatMayNotWriteIsNotReadyButKeepsRunning() throws {
    let server = try TestServer()
    try expect("ready", server)
    #expect(try run("prlimit", "--pid", "\(server.processID)", "--fsize=0:unlimited"))
    try expect("disk_full", server)
    expectProblem(
      try server.client.send("POST", "/v1/recordings", [:], .bytes(Array("RIFF".utf8))), 507, "disk_full")
    #expect(try run("prlimit", "--pid", "\(server.processID)", "--fsize=unlimited:unlimited"))
    try expect("ready", server)
    _ = try server.client.upload(Clip.tone.bytes, name: "tone.wav")
    try server.stop()
  }
}
