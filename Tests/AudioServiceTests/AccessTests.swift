import Foundation
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

  @Test func aPageMayReadWhyItsTokenIsRefused() async throws {
    let keyed = try KeyedBench()
    let recording = try await keyed.recording()
    for (target, status) in [("/v1/recordings/\(recording)", 401), ("/v1/none", 401), ("/none", 404)] {
      let fields: HTTPFields = ["Origin": "https://any.example"]
      let refused = try await keyed.respond(.get, "\(target)?token=expired", key: nil, fields: fields)
      #expect(refused.status.code == status)
      #expect(refused.fields["Access-Control-Allow-Origin"] == "*")
      #expect(refused.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
      let unshared = try await keyed.respond(.get, target, key: nil, fields: fields)
      #expect(!unshared.fields.contains("Access-Control-Allow-Origin"))
    }
  }

  @Test func aTokenSharesNothingIfThereAreNoKeys() async throws {
    let bench = try TestBench()
    let target = "/v1/recordings/\(try bench.recording().id)?token=x"
    let fields: HTTPFields = ["Origin": "https://evil.example"]
    let response = try await bench.respond(.get, target, fields: fields)
    #expect(response.status == .ok)
    let preflight = try await bench.respond(
      .options, target, fields: ["Origin": "https://evil.example", "Access-Control-Request-Method": "GET"])
    for answer in [response, preflight] {
      #expect(!answer.fields.contains { $0.name.hasPrefix("Access-Control") })
      #expect(answer.fields["Cross-Origin-Resource-Policy"] != "cross-origin")
    }
  }

  @Test func aPageMayReadEveryFieldOfTheServicesOwn() throws {
    var configuration = Configuration()
    configuration.corsOrigins = .any
    let exposed = try #require(CrossOriginPolicy(configuration)).exposedFields
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../Sources/AudioService").standardized
    let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
    var names: Set<String> = []
    for case let file as URL in files where file.pathExtension == "swift" {
      let text = try String(contentsOf: file, encoding: .utf8)
      names.formUnion(text.matches(of: /"(Stillwave-[A-Za-z-]+)"/).map { String($0.output.1) })
    }
    #expect(names.count > 6)
    #expect(names.subtracting(exposed) == [])
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
