import Testing

@testable import HTTP

/// Answers with the request's target.
private struct Echo: HTTPResponder {
  var fields: HTTPFields = [:]

  func respond(to request: HTTPRequest) -> HTTPAnswer {
    var response = HTTPResponse(.ok, fields: fields)
    response.fields["Path"] = request.target.path
    response.fields["Segments"] = request.target.segments.joined(separator: "|")
    response.fields["Query"] = request.target.query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    return .later { [response] in response }
  }
}

@Suite struct BasePathTests {
  private func ask(
    _ target: String, _ method: HTTPMethod = .get, base: String = "/tools/audio", fields: HTTPFields = [:]
  ) async throws -> HTTPResponse {
    let base = try #require(BasePath(base))
    let request = try HTTPRequest(method: method, target: target, fields: ["Host": "a.example"])
    return try await BasePathResponder(base, Echo(fields: fields)).respond(to: request).response
  }

  @Test(
    "a base path is plain segments after a slash",
    arguments: [
      ("/", ""), ("/audio", "/audio"), ("/audio/", "/audio"), ("/tools/audio-1.2_~/", "/tools/audio-1.2_~"),
      ("", nil), ("audio", nil), ("//audio", nil), ("/audio//", nil), ("/a/../b", nil), ("/./a", nil), ("/a b", nil),
      ("/a%2Fb", nil), ("/ä", nil), ("/a?b", nil), ("http://a.example/audio", nil),
    ] as [(String, String?)])
  func parsing(text: String, expected: String?) {
    #expect(BasePath(text)?.text == expected)
  }

  @Test(
    "a path is served with and without the prefix",
    arguments: [
      ("/tools/audio/v1/recordings", "/v1/recordings", "v1|recordings"),
      ("/v1/recordings", "/v1/recordings", "v1|recordings"),
      ("/tools/audio/", "/", ""), ("/", "/", ""), ("/tools/%61udio/v1", "/v1", "v1"),
      ("/tools/audio/v1/a%2Fb", "/v1/a%2Fb", "v1|a/b"),
      ("/tools/audiobooks/v1", "/tools/audiobooks/v1", "tools|audiobooks|v1"),
      ("/tools/audio%2Fv1", "/tools/audio%2Fv1", "tools|audio/v1"), ("/tools", "/tools", "tools"),
      ("/tools/audio//v1", "//v1", "|v1"), ("http://a.example/tools/audio/v1", "/v1", "v1"),
    ])
  func serving(target: String, path: String, segments: String) async throws {
    let response = try await ask(target + "?a=1")
    #expect(response.fields["Path"] == path && response.fields["Segments"] == segments)
    #expect(response.fields["Query"] == "a=1")
  }

  @Test func thePrefixWithoutItsSlashRedirectsToThePage() async throws {
    let response = try await ask("/tools/audio")
    #expect(response.status.code == 308 && response.fields["Location"] == "/tools/audio/")
    #expect(try await ask("/tools/audio", .post).fields["Segments"] == "", "and is nothing to be changed")
  }

  @Test("absolute paths in fields always get the prefix", arguments: ["/tools/audio/x", "/x"])
  func fields(target: String) async throws {
    let response = try await ask(
      target,
      fields: [
        "Location": "/v1/jobs/1", "Link": "</v1/jobs?cursor=a>; rel=\"next\", <https://b.example/>; rel=\"help\"",
      ])
    #expect(response.fields["Location"] == "/tools/audio/v1/jobs/1")
    #expect(
      response.fields["Link"]
        == "</tools/audio/v1/jobs?cursor=a>; rel=\"next\", <https://b.example/>; rel=\"help\"")
    let elsewhere = try await ask(target, fields: ["Location": "//b.example/", "Link": "<//b.example/>; rel=\"next\""])
    #expect(
      elsewhere.fields["Location"] == "//b.example/" && elsewhere.fields["Link"] == "<//b.example/>; rel=\"next\"")
  }
}
