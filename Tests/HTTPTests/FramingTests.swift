import Testing

@testable import HTTP

private let good = "GET /good HTTP/1.1\r\nHost: a\r\n\r\n"

@Suite("Lines 1 to 4, 6 and 7: what is refused, and what is not") struct FramingTests {
  @Test(arguments: BadRequest.all)
  func aRequestThatBreaksARuleIsRefused(_ bad: BadRequest) {
    let reader = WireReader(bad.wire)
    #expect(reader.refusal == bad.status)
    #expect(reader.requests.isEmpty)
  }

  // Splitting the long ones at every byte would take minutes without testing anything new; they are split by size
  // below.
  @Test(arguments: BadRequest.all.filter { $0.wire.utf8.count < 1000 })
  func splittingItDoesNotPreventTheRefusal(_ bad: BadRequest) {
    for outcome in WireReader.outcomesOfAllSplits(bad.wire) {
      #expect(outcome.refusal == bad.status)
      #expect(outcome.requests.isEmpty)
    }
  }

  @Test(arguments: BadRequest.all)
  func itIsRefusedAfterAGoodRequestAndEndsTheConnection(_ bad: BadRequest) {
    let reader = WireReader(good + bad.wire + good)
    #expect(reader.refusal == bad.status)
    #expect(reader.requests.map(\.path) == ["/good"])
  }

  @Test(arguments: ["/%zz", "/%4", "/%00", "/%ff", "/?a=%00", "/?%c0%af=b"])
  func aBrokenEscapeIsReportedAsOne(target: String) {
    let error = #expect(throws: HTTPParseError.self) {
      try RequestTarget(parsing: Array(target.utf8)[...], method: .get)
    }
    #expect(error == .malformed(.escape) && error?.problem.detail.contains("%25") == true)
  }

  @Test(arguments: [
    "Host: a", "Host: a:80", "Host: a:", "Host: [::1]", "Host: [::1]:8080", "host:a", "HOST: \t a.b-c \t",
    "Host: 127.0.0.1:1", "Host: [::ffff:127.0.0.1]", "Host: [::]", "Host: [1::]", "Host: [1:2:3:4:5:6:7:8]",
    "Host: [1:2:3:4:5:6:7::]", "Host: [1:2:3:4:5:6:1.2.3.4]", "Host: [FE80::AbCd]:1",
    "Host: a!$&'()*+,;=b", "Host: %c3%A9.example:80", "Host: a%00b",
  ])
  func aValidHostIsAccepted(_ field: String) {
    #expect(WireReader("GET / HTTP/1.1\r\n\(field)\r\n\r\n").requests.count == 1)
  }

  @Test(arguments: [
    ("a length", "Content-Length: 3\r\n\r\nabc", "abc"),
    ("a length padded with blanks", "Content-Length:\t 3 \r\n\r\nabc", "abc"),
    ("a length behind zeros", "Content-Length: 003\r\n\r\nabc", "abc"),
    ("a length behind 30 zeros", "Content-Length: \(String(repeating: "0", count: 30))3\r\n\r\nabc", "abc"),
    ("a length that is octal to some", "Content-Length: 010\r\n\r\n0123456789", "0123456789"),
    ("no content", "Content-Length: 0\r\n\r\n", ""), ("no content, twice told", "Content-Length: 00\r\n\r\n", ""),
    ("chunks", "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", "abc"),
    ("the coding in capitals, padded", "Transfer-Encoding: \t CHUNKED \r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"),
    ("16 digits", "Transfer-Encoding: chunked\r\n\r\n0000000000000003\r\nabc\r\n0\r\n\r\n", "abc"),
    (
      "upper and lower hex", "Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
      "01234567890123456789"
    ),
    ("extensions", "Transfer-Encoding: chunked\r\n\r\n3;a=\"b \\\" c\"\r\nabc\r\n0 ;x ; y\t= z;q=\"\"\r\n\r\n", "abc"),
    (
      "an extension of 256 bytes",
      "Transfer-Encoding: chunked\r\n\r\n3;\(String(repeating: "e", count: 255))\r\nabc\r\n0\r\n\r\n", "abc"
    ),
    ("trailers", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nHost: evil\r\nX: y\r\n\r\n", "abc"),
    ("many last zeros", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n000\r\n\r\n", "abc"),
  ])
  func aBodyEndsWhereItSaysAndTheNextRequestFollows(_ name: String, _ rest: String, _ body: String) {
    let wire = "POST /p HTTP/1.1\r\nHost: a\r\n\(rest)\(good)"
    let expected = [
      WireReader.Request(method: "POST", path: "/p", body: body), .init(method: "GET", path: "/good", body: ""),
    ]
    for outcome in WireReader.outcomesOfAllSplits(wire) {
      #expect(outcome.requests == expected)
      #expect(outcome.refusal == nil)
    }
  }

  @Test func onlyAnIdenticalHeadIsRecognized() {
    let wires = [
      good, good, "GET /good HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
      "GET /good HTTP/1.1\r\nHost: b\r\n\r\n", "GET /gooD HTTP/1.1\r\nHost: a\r\n\r\n", good, good,
    ]
    for outcome in WireReader.outcomesOfAllSplits(wires.joined()) {
      #expect(outcome.requests.map(\.path) == ["/good", "/good", "/good", "/good", "/gooD", "/good", "/good"])
      #expect(outcome.requests.map(\.body) == ["", "", "abc", "", "", "", ""])
      #expect(outcome.refusal == nil)
    }
    #expect(WireReader(good + good + "GET /good HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n").refusal == 400)
  }

  @Test(arguments: [
    "Content-Length: 3\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n3\r\nab",
    "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
  ])
  func aBodyCutShortIsNotComplete(_ rest: String) {
    let reader = WireReader("POST / HTTP/1.1\r\nHost: a\r\n\(rest)")
    #expect(reader.requests.isEmpty)
    #expect(reader.isIncomplete)
  }

  @Test(arguments: [
    "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b:80/x?y HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET HTTP://[::1] HTTP/1.1\r\nHost: a\r\n\r\n", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX:\r\nY: é \t\r\n\r\n",
  ])
  func unusualButValidRequestsAreAccepted(_ wire: String) {
    for outcome in WireReader.outcomesOfAllSplits(wire + good) {
      #expect(outcome.refusal == nil)
      #expect(outcome.requests.count == 2)
    }
  }

  @Test func theLimitsThemselvesAreAllowed() {
    let target = "/" + String(repeating: "a", count: 8192 - "GET / HTTP/1.1".utf8.count)
    #expect(WireReader("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n").requests.count == 1)
    let fields = (0..<99).map { "X\($0): a\r\n" }.joined()
    #expect(WireReader("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n").requests.count == 1)
  }

  @Test func anEndlessLineIsRefusedBeforeItIsBuffered() {
    let piece = [UInt8](repeating: UInt8(ascii: "a"), count: 1000)
    #expect(WireReader([Array("GET /".utf8)] + Array(repeating: piece, count: 9)).refusal == 414)
    #expect(WireReader(Array(repeating: piece, count: 9)).refusal == 400)
    let head = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8)
    #expect(WireReader([head] + Array(repeating: piece, count: 17)).refusal == 431)
  }

  // Over a socket, where the answer and the end of the connection are visible. One server for all, because each test
  // blocks one of the few threads.
  @Test func theClientReceivesEachRefusalAndTheEnd() async throws {
    try await withServer(echo) { port, server in
      for (index, bad) in BadRequest.all.enumerated() {
        let client = try WireClient(port: port)
        try client.send(good + bad.wire + good)
        #expect(try client.answer().body == "/good", "\(bad.testDescription)")
        let refusal = try client.answer()
        #expect(refusal.status == bad.status, "\(bad.testDescription)")
        #expect(refusal.field("Connection") == "close", "\(bad.testDescription)")
        #expect(refusal.field("Content-Type") == "application/problem+json", "\(bad.testDescription)")
        #expect(try client.readToEnd() == "", "\(bad.testDescription)")
        #expect(server.statistics.requests == 2 * (index + 1), "\(bad.testDescription)")
      }
    }
  }

  @Test func anAbsoluteTargetOverridesTheHostField() {
    let reader = WireReader("GET http://b:81/x HTTP/1.1\r\nX: y\r\nHost: a\r\n\r\n")
    #expect(reader.heads.first?.fields.values(of: "Host") == ["b:81"])
  }

  @Test func aHugeChunkIsPassedOnWithoutAllocatingItsSize() async throws {
    for framing in ["Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", "Content-Length: \(Int64.max)\r\n\r\n"] {
      try await withServer { request in
        text("\(try await request.body.read()?.count ?? 0)")
      } test: { port, _ in
        let client = try WireClient(port: port)
        try client.send("POST / HTTP/1.1\r\nHost: a\r\n\(framing)abc")
        #expect(try client.answer().body == "3")
      }
    }
  }

  @Test func aBodyThatBeginsWithABrokenChunkNeverReachesAHandler() async throws {
    try await withServer { _ in
      text("no", .notFound)
    } test: { port, _ in
      let client = try WireClient(port: port)
      try client.send("POST /unknown HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nx\r\n")
      #expect(try client.answer().status == 400)
    }
  }
}
