import Synchronization
import Testing

@testable import HTTP

@Suite("Line 5: a body cut short", .serialized) struct TruncatedBodyTests {
  @Test(arguments: ["Content-Length: 5\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"])
  func aTruncatedBodyIsNeverASuccess(_ rest: String) async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(rest)")
      client.shutdownOutput()
      #expect(try client.answer().status == 400)
      #expect(try client.readToEnd() == "")
    }
  }

  @Test func aResetFailsTheReaderOfTheBody() async throws {
    let began = Signal()
    let failure = Mutex<RequestBodyError?>(nil)
    let ended = Signal()
    try await withServer { request in
      _ = try await request.body.read()
      began.give()
      do throws(RequestBodyError) {
        while try await request.body.read() != nil {}
      } catch {
        failure.withLock { $0 = error }
      }
      ended.give()
      return text("late")
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc")
      await began.wait()
      client.reset()
      await ended.wait()
      #expect(failure.withLock { $0 } == .truncated)
    }
  }

  @Test(arguments: [
    "Content-Length: 3\r\n\r\n", "Content-Length: 3\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n3", "Transfer-Encoding: chunked\r\n\r\n3\r\nab",
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
    "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n",
  ])
  func aBodyIsNotWholeBeforeItsLastByte(_ rest: String) async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(rest)")
      client.shutdownOutput()
      let answer = try client.answer()
      #expect(answer.status == 400)
      #expect(answer.body.contains("\"truncated_body\""))
    }
  }
}
