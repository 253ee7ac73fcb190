import Testing

@testable import HTTP

private struct Agreeing: HTTPResponder {
  func respond(to request: HTTPRequest) -> HTTPAnswer { .now(HTTPResponse(.ok)) }
}

private func response(
  _ method: HTTPMethod = .get, _ target: String = "/v1/recordings", host: String? = "127.0.0.1:8080",
  origin: String? = nil, site: String? = nil, names: Set<String> = [], origins: AllowedOrigins = .only([])
) async throws -> HTTPResponse {
  var fields: HTTPFields = [:]
  fields["Host"] = host
  fields["Origin"] = origin
  fields["Sec-Fetch-Site"] = site
  let guarded = HostGuard(names: names, origins: origins, setting: "--allowed-hosts", Agreeing())
  let request = try HTTPRequest(method: method, target: target, fields: fields)
  return try await guarded.respond(to: request).response
}

private func status(
  _ method: HTTPMethod = .get, _ target: String = "/v1/recordings", host: String? = "127.0.0.1:8080",
  origin: String? = nil, site: String? = nil, names: Set<String> = [], origins: AllowedOrigins = .only([])
) async throws -> Int {
  try await response(method, target, host: host, origin: origin, site: site, names: names, origins: origins)
    .status.code
}

@Suite struct HostGuardTests {
  @Test(arguments: [
    "localhost", "LocalHost:8080", "localhost.", "app.localhost:1", "127.0.0.1", "127.8.9.10:80", "[::1]:8080",
    "[0:0:0:0:0:0:0:1]", "localhost:",
  ])
  func aLoopbackNameIsServed(_ host: String) async throws { #expect(try await status(host: host) == 200) }

  /// A page can't use an address as its own name.
  @Test(arguments: [
    "10.0.0.1", "0.0.0.0", "192.168.1.5:8080", "203.0.113.9.", "[::2]", "[fd00::1]:8080", "[::ffff:10.0.0.1]",
  ])
  func anAddressIsServed(_ host: String) async throws { #expect(try await status(host: host) == 200) }

  @Test(arguments: [
    "evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.999",
    "notlocalhost", "127.1", "2130706433", "0x7f000001", "1.2.3.4.5", "1..2.3", "+1.2.3.4", "1.2.3", "evil",
  ])
  func anyOtherNameIsRefused(_ host: String) async throws { #expect(try await status(host: host) == 403) }

  @Test func aRefusalNamesTheSetting() async throws {
    let body = try await response(host: "evil.example").body.collect()
    let text = String(decoding: body, as: UTF8.self)
    #expect(text.contains("host_not_allowed") && text.contains("“evil.example”") && text.contains("--allowed-hosts"))
  }

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

  @Test func withoutHostAPageNeedsAConfiguredOriginForChanges() async throws {
    let origin = "http://app.example"
    #expect(try await status(.post, host: nil, origin: origin) == 403)
    #expect(try await status(.post, host: nil, origin: origin, origins: .only([#require(Origin(origin))])) == 200)
    #expect(try await status(.post, host: nil) == 200)
  }

  @Test(arguments: [HTTPMethod.post, .patch, .delete, .put])
  func aForeignPageMayNotMakeChanges(_ method: HTTPMethod) async throws {
    for origin in [
      "https://evil.example", "http://evil.example:8080", "null", "http://127.0.0.1:3000", "http://localhost",
      "file://", "", "http://127.0.0.1:8080/path", "http://127.0.0.1:8080, http://evil.example",
    ] {
      #expect(try await status(method, origin: origin) == 403, "\(origin)")
    }
  }

  @Test(
    "a change for one's own page is made",
    arguments: [
      ("127.0.0.1:8080", "http://127.0.0.1:8080"), ("localhost:8080", "HTTP://LOCALHOST:8080"),
      ("[::1]:8080", "http://[::1]:8080"), ("192.168.1.5:8080", "http://192.168.1.5:8080"),
      ("audio.example", "https://audio.example"), ("audio.example", "http://audio.example:80"),
      ("AUDIO.example:443", "https://audio.example"), ("audio.example:8080", "http://audio.example:8080"),
    ])
  func ownPage(host: String, origin: String) async throws {
    #expect(try await status(.post, host: host, origin: origin, names: ["audio.example"]) == 200)
  }

  @Test(
    "a page with another host or port is foreign",
    arguments: [
      ("127.0.0.1:8080", "http://localhost:8080"), ("audio.example", "https://audio.example:444"),
      ("192.168.1.5:8080", "http://192.168.1.5:8081"), ("192.168.1.5:8080", "http://192.168.1.6:8080"),
      ("audio.example", "http://other.example"), ("10.0.0.1:80", "http://evil.example"),
    ])
  func foreignPage(host: String, origin: String) async throws {
    #expect(try await status(.post, host: host, origin: origin, names: ["audio.example", "other.example"]) == 403)
  }

  @Test(
    "a request across sites changes nothing unless its origin is configured",
    arguments: [
      ("cross-site", nil, 403), ("Cross-Site", nil, 403), ("cross-site", "http://127.0.0.1:8080", 403),
      ("cross-site", "https://app.example", 200), ("same-site", nil, 200), ("same-origin", nil, 200),
      ("none", nil, 200),
      ("same-site", "https://app.example", 200), ("same-site", "https://evil.example", 403),
    ] as [(String, String?, Int)])
  func acrossSites(site: String, origin: String?, expected: Int) async throws {
    let origins = AllowedOrigins.only([try #require(Origin("https://app.example"))])
    for method in [HTTPMethod.post, .put, .patch, .delete] {
      #expect(try await status(method, origin: origin, site: site, origins: origins) == expected)
    }
    #expect(try await status(.get, origin: origin, site: site, origins: origins) == 200)
    #expect(try await status(.post, origin: origin, site: site, origins: .any) == 200)
  }

  @Test func aConfiguredOriginMayMakeChanges() async throws {
    let origins = AllowedOrigins.only([try #require(Origin("https://app.example"))])
    #expect(try await status(.post, origin: "https://app.example", origins: origins) == 200)
    #expect(try await status(.post, origin: "https://app.example:443", origins: origins) == 200)
    #expect(try await status(.post, origin: "http://app.example", origins: origins) == 403)
    #expect(try await status(.post, origin: "https://any.example", origins: .any) == 200)
  }

  @Test(arguments: [HTTPMethod.get, .head, .options])
  func aForeignPageMaySendAReadingRequest(_ method: HTTPMethod) async throws {
    #expect(try await status(method, origin: "https://evil.example") == 200)
  }
}

private func shared(
  _ method: HTTPMethod = .get, _ target: String = "/", fields: HTTPFields = [:],
  origins: AllowedOrigins = .only([]), sharesTokens: Bool = false
) async throws -> HTTPResponse {
  let policy = CrossOriginPolicy(
    origins: origins, sharesTokens: sharesTokens, requestFields: ["Range", "X-Request-Id"],
    exposedFields: ["ETag", "Location"])
  let router = Router(routes: [
    Route(.get, "/", { _, _ in HTTPResponse(.ok) }), Route(.delete, "/", { _, _ in HTTPResponse(.noContent) }),
  ]) { _, _ in HTTPResponse(.notFound) }
  let request = try HTTPRequest(method: method, target: target, fields: fields)
  return try await CrossOriginSharing(policy, router).respond(to: request).response
}

@Suite struct AuthorityTests {
  @Test(arguments: [
    ("LocalHost", "localhost"), ("%6Cocal%68ost:80", "localhost"), ("a%2eb.", "a.b"), ("a%2Fb", "a%2fb"),
    ("%c3%a9", "%c3%a9"), ("a!b,c", "a!b,c"), ("a%252e", "a%252e"),
  ])
  func escapesThatAreNotNeededDoNotMakeAnotherName(_ text: String, _ host: String) {
    #expect(Authority(text, defaultPort: 80)?.host == host)
  }
}

@Suite struct CrossOriginSharingTests {
  private let app = AllowedOrigins.only(
    [Origin("https://app.example")].compactMap { $0 }.reduce(into: []) { $0.insert($1) })

  @Test func aPageOfAnAllowedOriginMayRead() async throws {
    let response = try await shared(fields: ["Origin": "https://app.example"], origins: app)
    #expect(response.fields["Access-Control-Allow-Origin"] == "https://app.example")
    #expect(response.fields["Access-Control-Expose-Headers"] == "ETag, Location")
    #expect(response.fields["Vary"] == "Origin, Referer")
  }

  @Test func aPageOfAnotherOriginMayNot() async throws {
    for origin in ["https://evil.example", "null", "http://app.example"] {
      let response = try await shared(fields: ["Origin": origin], origins: app)
      #expect(!response.fields.contains("Access-Control-Allow-Origin"))
      #expect(!response.fields.contains("Cross-Origin-Resource-Policy"))
      #expect(response.fields["Vary"] == "Origin, Referer")
    }
  }

  @Test(
    "a page of an allowed origin may embed what it doesn't read",
    arguments: [
      ("https://app.example/", "cross-origin"), ("https://app.example/talks/7?x", "cross-origin"),
      ("https://app.example", "cross-origin"), ("https://app.example.evil.example/", nil), ("null", nil), ("", nil),
      ("https://evil.example/https://app.example/", nil), ("https://app.example@evil.example/", nil),
    ])
  func embedding(_ page: String, _ policy: String?) async throws {
    let response = try await shared(fields: ["Referer": page], origins: app)
    #expect(response.fields["Cross-Origin-Resource-Policy"] == policy)
    #expect(!response.fields.contains("Access-Control-Allow-Origin"))
    #expect(response.fields["Vary"] == "Origin, Referer")
    let foreign = try await shared(fields: ["Referer": page, "Origin": "https://evil.example"], origins: app)
    #expect(!foreign.fields.contains("Cross-Origin-Resource-Policy"))
  }

  @Test(
    "every page may read an answer to GET or HEAD with a token, if there are tokens",
    arguments: ["/?token=x", "/none?a=1&token=", "/?token=x&token=y"],
    [[:], ["Origin": "https://evil.example"], ["Origin": "https://app.example"]] as [HTTPFields])
  func tokens(_ target: String, _ fields: HTTPFields) async throws {
    for method in [HTTPMethod.get, .head] {
      let response = try await shared(method, target, fields: fields, origins: app, sharesTokens: true)
      #expect(response.fields["Access-Control-Allow-Origin"] == "*")
      #expect(response.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
      #expect(response.fields["Access-Control-Expose-Headers"] == "ETag, Location")
      #expect(!response.fields.contains("Vary"))
    }
    for (method, target, shares) in [
      (HTTPMethod.delete, target, true), (.get, "/?tokens=x", true), (.get, target, false),
    ] {
      let response = try await shared(method, target, fields: ["Origin": "https://evil.example"], sharesTokens: shares)
      #expect(!response.fields.contains { $0.name.hasPrefix("Access-Control") })
      #expect(!response.fields.contains("Cross-Origin-Resource-Policy"))
    }
  }

  @Test(
    "every page may ask to send GET and HEAD, if there are tokens",
    arguments: [("GET", true), ("HEAD", true), ("DELETE", false), ("POST", false), ("get", false)])
  func tokenPreflights(_ method: String, _ isPermitted: Bool) async throws {
    let fields: HTTPFields = ["Origin": "https://evil.example", "Access-Control-Request-Method": method]
    let response = try await shared(.options, fields: fields, origins: app, sharesTokens: true)
    #expect(response.status == .noContent)
    #expect(response.fields["Access-Control-Allow-Origin"] == (isPermitted ? "*" : nil))
    #expect(response.fields["Access-Control-Allow-Methods"] == (isPermitted ? "GET, HEAD" : nil))
    #expect(
      response.fields["Access-Control-Allow-Headers"] == (isPermitted ? "Range, If-None-Match, If-Range" : nil))
    let without = try await shared(.options, fields: fields, origins: app)
    #expect(!without.fields.contains { $0.name.hasPrefix("Access-Control") })
  }

  @Test func ifAnyOriginIsAllowedAllGetTheSameAnswer() async throws {
    for fields in [["Origin": "null"], ["Origin": "https://app.example"], [:]] as [HTTPFields] {
      let response = try await shared(fields: fields, origins: .any)
      #expect(response.fields["Access-Control-Allow-Origin"] == "*")
      #expect(response.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
      #expect(!response.fields.contains("Vary"))
    }
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

  @Test func aForeignPreflightGetsNoPermission() async throws {
    let response = try await shared(
      .options, fields: ["Origin": "https://evil.example", "Access-Control-Request-Method": "DELETE"], origins: app)
    #expect(!response.fields.contains { $0.name.hasPrefix("Access-Control") })
  }
}
