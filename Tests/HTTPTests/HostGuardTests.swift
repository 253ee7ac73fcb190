import Testing

@testable import HTTP

private struct Agreeing: HTTPResponder {
  func respond(to request: HTTPRequest) -> HTTPAnswer { .now(HTTPResponse(.ok)) }
}

private func status(
  _ method: HTTPMethod = .get, _ target: String = "/v1/recordings", host: String? = "127.0.0.1:8080",
  origin: String? = nil, names: Set<String> = [], origins: AllowedOrigins = .only([])
) async throws -> Int {
  var fields: HTTPFields = [:]
  fields["Host"] = host
  fields["Origin"] = origin
  let guarded = HostGuard(names: names, origins: origins, Agreeing())
  let request = try HTTPRequest(method: method, target: target, fields: fields)
  return try await guarded.respond(to: request).response.status.code
}

@Suite struct HostGuardTests {
  @Test(arguments: [
    "localhost", "LocalHost:8080", "localhost.", "app.localhost:1", "127.0.0.1", "127.8.9.10:80", "[::1]:8080",
    "[0:0:0:0:0:0:0:1]", "localhost:",
  ])
  func aLoopbackNameIsServed(_ host: String) async throws { #expect(try await status(host: host) == 200) }

  @Test(arguments: [
    "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.999",
    "10.0.0.1", "0.0.0.0", "[::2]", "notlocalhost", "127.1",
  ])
  func anyOtherNameIsRefused(_ host: String) async throws { #expect(try await status(host: host) == 403) }

  @Test func aConfiguredNameIsServedAtAnyPort() async throws {
    let names: Set<String> = ["Audio.Example.com", "[fd00::1]"]
    #expect(try await status(host: "audio.example.com", names: names) == 200)
    #expect(try await status(host: "AUDIO.example.com.:443", names: names) == 200)
    #expect(try await status(host: "[FD00::1]:8080", names: names) == 200)
    #expect(try await status(host: "example.com", names: names) == 403)
  }

  @Test func theNameInAnAbsoluteTargetCounts() async throws {
    #expect(try await status(.get, "http://evil.example/v1/jobs", host: "localhost") == 403)
    #expect(try await status(.get, "http://localhost:8080/v1/jobs", host: "evil.example") == 200)
  }

  @Test func aClientOfHTTP10NeedsNoName() async throws { #expect(try await status(host: nil) == 200) }

  @Test func aPageThatNamesNoHostMayChangeNothingUnlessItsOriginIsConfigured() async throws {
    let origin = "http://app.example"
    #expect(try await status(.post, host: nil, origin: origin) == 403)
    #expect(try await status(.post, host: nil, origin: origin, origins: .only([#require(Origin(origin))])) == 200)
    #expect(try await status(.post, host: nil) == 200)
  }

  @Test(arguments: [HTTPMethod.post, .patch, .delete, .put])
  func aChangeForAForeignPageIsRefused(_ method: HTTPMethod) async throws {
    for origin in [
      "https://evil.example", "http://evil.example:8080", "null", "http://127.0.0.1:3000", "http://localhost",
      "file://", "", "http://127.0.0.1:8080/path", "http://127.0.0.1:8080, http://evil.example",
    ] {
      #expect(try await status(method, origin: origin) == 403, "\(origin)")
    }
  }

  @Test(arguments: ["http://127.0.0.1:8080", "http://localhost:8080", "HTTP://LOCALHOST:8080", "http://[::1]:8080"])
  func aChangeForOnesOwnPageIsMade(_ origin: String) async throws {
    #expect(try await status(.post, origin: origin) == 200)
  }

  @Test func aChangeBehindAProxyIsMadeForThePublicName() async throws {
    #expect(
      try await status(.post, host: "audio.example", origin: "https://audio.example", names: ["audio.example"]) == 200)
    #expect(
      try await status(.post, host: "audio.example", origin: "https://audio.example:444", names: ["audio.example"])
        == 403)
  }

  @Test func aChangeForAConfiguredOriginIsMade() async throws {
    let origins = AllowedOrigins.only([try #require(Origin("https://app.example"))])
    #expect(try await status(.post, origin: "https://app.example", origins: origins) == 200)
    #expect(try await status(.post, origin: "https://app.example:443", origins: origins) == 200)
    #expect(try await status(.post, origin: "http://app.example", origins: origins) == 403)
    #expect(try await status(.post, origin: "https://any.example", origins: .any) == 200)
  }

  @Test(arguments: [HTTPMethod.get, .head, .options])
  func readingIsNobodysBusiness(_ method: HTTPMethod) async throws {
    #expect(try await status(method, origin: "https://evil.example") == 200)
  }

  @Test func onlyLoopbackAddressesAreGuarded() {
    for address in ["127.0.0.1", "localhost", "::1", "127.0.0.2"] { #expect(HostGuard.isLoopback(address)) }
    for address in ["0.0.0.0", "::", "192.168.1.5", "audio.example", "fe80::1"] {
      #expect(!HostGuard.isLoopback(address))
    }
  }
}

private func shared(
  _ method: HTTPMethod = .get, fields: HTTPFields, origins: AllowedOrigins
) async throws -> HTTPResponse {
  let policy = CrossOriginPolicy(
    origins: origins, requestFields: ["Range", "X-Request-Id"], exposedFields: ["ETag", "Location"])
  let router = Router(routes: [
    Route(.get, "/", { _, _ in HTTPResponse(.ok) }), Route(.delete, "/", { _, _ in HTTPResponse(.noContent) }),
  ]) { _, _ in HTTPResponse(.notFound) }
  let request = try HTTPRequest(method: method, target: "/", fields: fields)
  return try await CrossOriginSharing(policy, router).respond(to: request).response
}

@Suite struct CrossOriginSharingTests {
  private let app = AllowedOrigins.only(
    [Origin("https://app.example")].compactMap { $0 }.reduce(into: []) { $0.insert($1) })

  @Test func aPageOfAnAllowedOriginMayRead() async throws {
    let response = try await shared(fields: ["Origin": "https://app.example"], origins: app)
    #expect(response.fields["Access-Control-Allow-Origin"] == "https://app.example")
    #expect(response.fields["Access-Control-Expose-Headers"] == "ETag, Location")
    #expect(response.fields["Vary"] == "Origin")
  }

  @Test func aPageOfAnotherOriginMayNot() async throws {
    for origin in ["https://evil.example", "null", "http://app.example"] {
      let response = try await shared(fields: ["Origin": origin], origins: app)
      #expect(!response.fields.contains("Access-Control-Allow-Origin"))
      #expect(response.fields["Vary"] == "Origin")
    }
  }

  @Test func anAnswerWithoutOriginVariesByItToo() async throws {
    #expect(try await shared(fields: [:], origins: app).fields["Vary"] == "Origin")
  }

  @Test func withAnyOriginTheAnswerIsTheSameForAll() async throws {
    let response = try await shared(fields: ["Origin": "null"], origins: .any)
    #expect(response.fields["Access-Control-Allow-Origin"] == "*")
    #expect(!response.fields.contains("Vary"))
  }

  @Test func aPreflightIsAnswered() async throws {
    let response = try await shared(
      .options,
      fields: [
        "Origin": "https://app.example", "Access-Control-Request-Method": "DELETE",
        "Access-Control-Request-Headers": "x-request-id",
      ], origins: app)
    #expect(response.status == .noContent)
    #expect(response.fields["Access-Control-Allow-Origin"] == "https://app.example")
    #expect(response.fields["Access-Control-Allow-Methods"] == "DELETE, GET, HEAD, OPTIONS")
    #expect(response.fields["Access-Control-Allow-Headers"] == "Range, X-Request-Id")
    #expect(response.fields["Access-Control-Max-Age"] == "7200")
  }

  @Test func aForeignPreflightIsToldNothing() async throws {
    let response = try await shared(
      .options, fields: ["Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"], origins: app)
    #expect(!response.fields.contains { $0.name.hasPrefix("Access-Control") })
  }
}
