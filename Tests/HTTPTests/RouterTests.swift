import Testing

@testable import HTTP

private let router = Router(
  routes: [
    Route(.get, "/") { _, _ in text("root") },
    Route(.get, "/v1/recordings") { _, _ in text("list") },
    Route(.post, "/v1/recordings") { _, _ in text("create") },
    Route(.get, "/v1/recordings/{id}") { _, parameters in text("one \(parameters["id"])") },
    Route(.head, "/v1/uploads/{id}") { _, _ in HTTPResponse(.ok, fields: ["Upload-Offset": "3"]) },
    Route(.get, "/v1/recordings/new") { _, _ in text("literal") },
    Route(.get, "/v1/recordings/new/{part}/x") { _, parameters in text("part \(parameters["part"])") },
    Route(.get, "/v1/recordings/{id}/{channel}/y") { _, parameters in
      text("\(parameters["id"]) \(parameters["channel"])")
    },
    Route(.get, "/fail") { _, _ in throw Problem(.conflict, code: "not_ready", detail: "Not yet.") },
  ],
  problem: { error, _ in
    ((error as? Problem) ?? (error as? RoutingError)?.problem ?? Problem(.internalServerError, code: "x", detail: ""))
      .response()
  })

private func answer(_ method: HTTPMethod, _ target: String) async throws -> (
  status: Int, fields: HTTPFields, body: String
) {
  let response = try await router.respond(to: try HTTPRequest(method: method, target: target)).response
  return (response.status.code, response.fields, String(decoding: try await response.body.collect(), as: UTF8.self))
}

@Suite struct RouterTests {
  @Test(arguments: [
    ("/", "root"), ("/v1/recordings", "list"), ("/v1/recordings/7", "one 7"), ("/v1/recordings/a%2Fb%20c", "one a/b c"),
    ("/v1/recordings/new", "literal"), ("/v1/recordings/new/1/x", "part 1"), ("/v1/recordings/new/1/y", "new 1"),
    ("/v1/%72ecordings", "list"), ("/v1/recordings?a=b", "list"), ("/v1/recordings/%252e", "one %2e"),
    ("/v1/recordings/..%2F%2e%2e", "one ../.."),
  ])
  func aPathFindsItsRow(_ target: String, _ body: String) async throws {
    #expect(try await answer(.get, target).body == body)
  }

  @Test(arguments: [
    "/v1", "/v1/", "/v1/recordings/", "/v1/recordings/7/", "//", "/V1/recordings", "/v1/recordings/new/1/z",
    "/../etc/passwd", "/v1/recordings/../../etc/passwd", "//etc/passwd",
  ])
  func aPathWithoutARowIsNotFound(_ target: String) async throws {
    #expect(try await answer(.get, target).status == 404)
  }

  @Test(arguments: [HTTPMethod.delete, .put, .patch, .trace])
  func aMethodWithoutARouteGetsTheAllowedMethods(_ method: HTTPMethod) async throws {
    let answer = try await answer(method, "/v1/recordings")
    #expect(answer.status == 405)
    #expect(answer.fields["Allow"] == "GET, HEAD, OPTIONS, POST")
  }

  @Test func headUsesGetsHandlerUnlessItHasARouteOfItsOwn() async throws {
    #expect(try await answer(.head, "/v1/recordings").status == 200)
    #expect(try await answer(.head, "/v1/uploads/1").fields["Upload-Offset"] == "3")
    #expect(try await answer(.get, "/v1/uploads/1").status == 405)
  }

  @Test func optionsListsTheAllowedMethods() async throws {
    #expect(try await answer(.options, "/v1/recordings/7").fields["Allow"] == "GET, HEAD, OPTIONS")
    let all = try await answer(.options, "*")
    #expect(all.status == 204)
    #expect(all.fields["Allow"] == "GET, HEAD, OPTIONS, POST")
  }

  @Test func aThrownErrorBecomesTheResponse() async throws {
    let answer = try await answer(.get, "/fail")
    #expect(answer.status == 409)
    #expect(
      answer.body
        == "{\"type\":\"/problems/not_ready\",\"title\":\"Conflict\",\"status\":409,\"detail\":\"Not yet.\","
        + "\"code\":\"not_ready\"}\n"
    )
  }

  @Test func aProblemsTextIsEscaped() {
    let problem = Problem(.badRequest, code: "c", detail: "a\"b\\c\n\u{1}é", parameter: "p")
    let json = String(decoding: problem.json(), as: UTF8.self)
    #expect(json.contains("\"detail\":\"a\\\"b\\\\c\\u000a\\u0001é\",\"code\":\"c\",\"parameter\":\"p\"}"))
  }

  @Test func aProblemSaysWhereInATextItIs() {
    let problem = Problem(.badRequest, code: "c", detail: "d", text: Problem.TextFault("bad_time", line: 3, column: 7))
    let json = String(decoding: problem.json(), as: UTF8.self)
    #expect(json.hasSuffix("\"code\":\"c\",\"fault\":\"bad_time\",\"line\":3,\"column\":7}\n"))
  }
}

@Suite struct RequestTargetTests {
  @Test func aQueryIsDecodedOnceInOrderWithRepeats() throws {
    let target = try HTTPRequest(method: .get, target: "/a?x=1&y=%2526+%2B&x=&z&=q&&n=%C3%A9").target
    #expect(
      target.query == [
        .init(name: "x", value: "1"), .init(name: "y", value: "%26 +"), .init(name: "x", value: ""),
        .init(name: "z", value: ""), .init(name: "", value: "q"), .init(name: "n", value: "é"),
      ])
  }

  @Test func dotsInAPathAreOrdinarySegments() throws {
    #expect(try HTTPRequest(method: .get, target: "/a/../%2e%2e/b").target.segments == ["a", "..", "..", "b"])
  }

  @Test func anAbsoluteTargetIsReducedToItsPath() throws {
    let target = try HTTPRequest(method: .get, target: "http://a:80?q=1").target
    #expect(target.path == "/")
    #expect(target.query == [.init(name: "q", value: "1")])
  }
}

@Suite struct HTTPFieldsTests {
  @Test func namesAreComparedWithoutCaseAndRepeatsAreJoined() {
    var fields: HTTPFields = ["Accept": "a", "X": "1", "accept": "b"]
    #expect(fields["ACCEPT"] == "a, b")
    #expect(fields.values(of: "accept") == ["a", "b"])
    fields["aCCept"] = "c"
    #expect(fields.map { "\($0.name)=\($0.value)" } == ["X=1", "aCCept=c"])
    fields["x"] = nil
    #expect(fields.count == 1)
    #expect(fields["x"] == nil)
  }

  @Test func aValueCannotBeginAnotherField() {
    let fields: HTTPFields = ["Location": "/a\r\nSet-Cookie: b\0"]
    #expect(fields.lines == Array("Location: /a  Set-Cookie: b \r\n".utf8))
  }

  @Test func defaultsAreAddedOnlyIfTheNameIsMissing() {
    var lines: [UInt8] = []
    lines.append(addingCapacity: 100) { output in
      (["a": "2", "B": "3", "B": "4"] as HTTPFields).appendLines(missingIn: ["A": "1"], to: &output)
    }
    #expect(lines == Array("B: 3\r\nB: 4\r\n".utf8))
  }
}

@Suite struct HTTPDateTests {
  @Test(arguments: [
    (Int64(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
    (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 GMT"),
  ])
  func aDateIsWrittenAndReadBack(_ seconds: Int64, _ text: String) {
    #expect(HTTPDate(seconds: seconds).text == text)
    #expect(HTTPDate(text)?.seconds == seconds)
  }

  @Test(arguments: ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"])
  func theObsoleteFormsAreAccepted(_ text: String) {
    #expect(HTTPDate(text)?.seconds == 784_111_777)
  }

  @Test(arguments: [
    "", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:00:00 GMT", "yesterday",
  ])
  func whatIsNoDateIsNotRead(_ text: String) {
    #expect(HTTPDate(text) == nil)
  }
}
