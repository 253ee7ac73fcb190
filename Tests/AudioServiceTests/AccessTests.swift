import HTTP
import Testing

@testable import AudioService
@testable import Jobs

/// Which browser pages may use the service.
@Suite struct AccessTests {
  @Test func aWebPageCannotReachAServiceOnLoopback() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let path = "/v1/recordings/\(recording.id)"
    let rebound = try await bench.respond(.get, path, fields: ["Host": "evil.example:8080"])
    #expect(rebound.status == .forbidden)
    let forged = try await bench.respond(
      .delete, path, fields: ["Host": "localhost:8080", "Origin": "https://evil.example"])
    #expect(forged.status == .forbidden)
    #expect(try bench.catalog.recording(recording.id) != nil)
    #expect(try await bench.respond(.get, path, fields: ["Host": "localhost:8080"]).status == .ok)
  }

  @Test func aConfiguredOriginMayUpload() async throws {
    let origin = try #require(Origin("https://app.example"))
    let bench = try TestBench { $0.corsOrigins = .only([origin]) }
    let fields: HTTPFields = ["Host": "localhost:8080", "Origin": "https://app.example"]
    let response = try await bench.respond(.post, "/v1/recordings", fields: fields, body: "RIFF")
    #expect(response.status == .created)
    #expect(response.fields["Access-Control-Allow-Origin"] == "https://app.example")
    #expect(response.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
    let exposed = response.fields.list("Access-Control-Expose-Headers")
    for name in ["Location", "ETag", "Content-Range", "X-Request-Id", "Upload-Offset"] {
      #expect(exposed.contains(name))
    }
  }

  @Test(
    "only addresses and configured names are served, whatever address is listened on", arguments: ["0.0.0.0", "::"])
  func beyondLoopback(host: String) async throws {
    let unnamed = try TestBench { $0.host = host }
    let recording = try unnamed.recording()
    for (method, path) in [(HTTPMethod.get, "/healthz"), (.delete, "/v1/recordings/\(recording.id)")] {
      let refused = try await unnamed.respond(method, path, fields: ["Host": "audio.example"])
      #expect(refused.status == .forbidden)
      #expect(String(decoding: try await refused.body.collect(), as: UTF8.self).contains("--allowed-hosts"))
    }
    #expect(try unnamed.catalog.recording(recording.id) != nil)
    for known in ["192.168.1.5:8080", "[fd00::5]:8080", "127.0.0.1:8080", "localhost"] {
      #expect(try await unnamed.respond(.get, "/healthz", fields: ["Host": known]).status == .ok)
    }
    // Like health checks that use HTTP/1.0.
    #expect(try await unnamed.respond(.get, "/healthz").status == .ok)
    let named = try TestBench {
      $0.host = host
      $0.allowedHosts = ["audio.example"]
    }
    #expect(try await named.respond(.get, "/healthz", fields: ["Host": "audio.example"]).status == .ok)
    #expect(try await named.respond(.get, "/healthz", fields: ["Host": "other.example"]).status == .forbidden)
  }

  @Test func aLongListIsCompressedForClientsThatAcceptIt() async throws {
    let bench = try TestBench()
    for number in 0..<5 { _ = try bench.recording(name: "talk \(number).wav") }
    let response = try await bench.respond(.get, "/v1/recordings", fields: ["Accept-Encoding": "gzip"])
    #expect(response.fields["Content-Encoding"] == "gzip")
    #expect(response.fields.list("Vary") == ["Accept-Encoding"])
  }
}
