import Testing

@testable import HTTP

private let field = "X-Request-Id: mine-1\r\n"

/// Every answer repeats the caller's ID, including refusals.
@Suite(.serialized) struct RequestIdentifierTests {
  private func identifier(_ pieces: [String]) async throws -> (status: Int, id: String?) {
    var found: (Int, String?) = (0, nil)
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      for piece in pieces { try client.send(piece) }
      let answer = try client.answer()
      found = (answer.status, answer.field("X-Request-Id"))
    }
    return found
  }

  @Test(
    "a refusal repeats the caller's ID, whatever its reason",
    arguments: [
      ("FOO / HTTP/1.1\r\nHost: a\r\n\(field)\r\n", 501), ("GET / HTTP/9.9\r\nHost: a\r\n\(field)\r\n", 505),
      ("GET /%zz HTTP/1.1\r\n\(field)Host: a\r\n\r\n", 400), ("\r\nGET /%zz HTTP/1.1\r\n\(field)\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\n\(field)Expect: tea\r\n\r\n", 417),
      ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\(field)\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\n\(field)Host: b\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\(field)\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\n\(field)X Y: a\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost: a\r\n\(field)X: \(String(repeating: "a", count: 20_000))\r\n\r\n", 431),
      ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: a\r\n\(field)\r\n", 414),
    ])
  func repeated(wire: String, status: Int) async throws {
    let answer = try await identifier([wire])
    #expect(answer.status == status && answer.id == "mine-1", "\(answer)")
  }

  @Test(
    "an ID that is invalid, from another head, or not in its own field is not repeated",
    arguments: [
      "FOO / HTTP/1.1\r\nHost: a\r\nX-Request-Id: not sane\r\n\r\n", "FOO / HTTP/1.1\r\n\(field)\(field)\r\n",
      "FOO / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\(field)\r\n", "FOO /X-Request-Id:mine-1\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\(field)\r\n", "FOO / HTTP/1.1\r\nX: a\r\n \(field)\r\n",
      "X-Request-Id: mine-1\r\n\r\n",
    ])
  func fresh(wire: String) async throws {
    #expect(try await identifier([wire]).id?.utf8.count == 13)
  }

  @Test func aRefusedHeadKeepsItsIdOrGetsANewOneHoweverItIsSplit() {
    let whole = WireReader.outcomesOfAllSplits("GET / HTTP/1.1\r\nHost: a\r\n\(field)Expect: tea\r\n\r\n")
    #expect(whole.allSatisfy { $0.refusedIdentifier == "mine-1" })
    let unread = WireReader.outcomesOfAllSplits("\r\nFOO / HTTP/1.1\r\nHost: a\r\n\(field)\r\n")
    #expect(unread.allSatisfy { $0.refusal == 501 && [nil, "mine-1"].contains($0.refusedIdentifier) })
  }

  @Test func aRefusalDoesNotReuseTheIdOfAnEarlierRequest() async throws {
    try await withServer(echo) { port, _ in
      let client = try WireClient(port: port)
      try client.send("GET / HTTP/1.1\r\nHost: a\r\n\(field)\r\nFOO / HTTP/1.1\r\nHost: a\r\n\r\n")
      #expect(try client.answer().field("X-Request-Id") == "mine-1")
      #expect(try client.answer().field("X-Request-Id")?.utf8.count == 13)
    }
  }
}
