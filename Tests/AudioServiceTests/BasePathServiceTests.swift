import FoundationEssentials
import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// The service behind a proxy that serves it under a path.
@Suite struct BasePathServiceTests {
  @Test("every Location leads through the proxy, whether or not it strips the prefix", arguments: ["", "/audio"])
  func locations(prefix: String) async throws {
    let bench = try TestBench { $0.basePath = BasePath("/audio") ?? .root }
    let made = try await bench.respond(
      .post, prefix + "/v1/recordings", fields: ["Idempotency-Key": "one"], body: "RIFF")
    let recording = try #require(made.fields["Location"])
    #expect(recording.hasPrefix("/audio/v1/recordings/"))
    // Stored with the service's own path, so that both ways of asking get it again.
    let again = try await bench.respond(.post, "/v1/recordings", fields: ["Idempotency-Key": "one"], body: "RIFF")
    #expect(again.fields["Location"] == recording)
    let upload = try await bench.tus.send(.post, prefix + "/v1/uploads", ["Upload-Length": "4"])
    let address = try #require(upload.fields["Location"])
    #expect(address.hasPrefix("/audio/v1/uploads/"))
    let inner = String(address.dropFirst("/audio".count))
    #expect(try await bench.tus.head(prefix + inner).offset == 0)
    #expect(try await bench.tus.patch(prefix + inner, at: 0, "RIFF").recording != nil)
    let source = try bench.recording()
    let job = try await bench.respond(.post, prefix + "/v1/recordings/\(source.id)/denoise")
    #expect(job.fields["Location"]?.hasPrefix("/audio/v1/jobs/") == true)
    await bench.runner.stop()
  }

  @Test("every problem's type leads through the proxy", arguments: ["", "/audio"])
  func problemTypes(prefix: String) async throws {
    let bench = try TestBench { $0.basePath = BasePath("/audio") ?? .root }
    func type(_ target: String, _ fields: HTTPFields = [:]) async throws -> String? {
      let response = try await bench.respond(.get, prefix + target, fields: fields)
      let document = Data(try await response.body.collect())
      return try JSONDecoder().decode(Typed.self, from: document).type
    }
    #expect(try await type("/v1/nothing") == "/audio/problems/not_found")
    #expect(try await type("/v1/recordings", ["Host": "evil.example"]) == "/audio/problems/host_not_allowed")
    #expect(
      try await type("/problems/not_found", ["Accept": "application/json"]) == "/audio/problems/not_found")
    let refused = refusal(bench.context.configuration)(Problem(.badRequest, code: "bad_request", detail: "No."), [:])
    #expect(try await Array(refused.body.collect()).starts(with: #"{"type":"/audio/problems/bad_request""#.utf8))
    var failed = Job(kind: .waveform, recording: try bench.recording().id)
    failed.error = RowJSON.text(JobError(title: "Failed", status: 500, detail: "It failed.", code: "worker_failed"))
    #expect(bench.context.document(failed).error?.type == "/audio/problems/worker_failed")
  }

  private struct Typed: Decodable { let type: String }

  @Test func theContractNamesThePrefixAsItsServer() async throws {
    for (base, server) in [("/", "- { url: /,"), ("/audio", "- { url: /audio,")] {
      let bench = try TestBench { $0.basePath = BasePath(base) ?? .root }
      let text = String(decoding: try await bench.respond(.get, "/openapi.yaml").body.collect(), as: UTF8.self)
      #expect(text.contains(server))
    }
  }

  @Test func thePageNamesItsFilesAndTheServiceRelativeToItself() async throws {
    let bench = try TestBench { $0.basePath = BasePath("/audio") ?? .root }
    let page = String(decoding: try await bench.respond(.get, "/audio/").body.collect(), as: UTF8.self)
    var modules: [String] = []
    for attribute in page.matches(of: #/(?:src|href)="([^"#][^"]*)"/#) {
      let address = String(attribute.1)
      #expect(!address.hasPrefix("/") && !address.contains(":"), "\(address)")
      #expect(try await bench.respond(.get, "/audio/" + address).status == .ok, "\(address)")
      if address.hasSuffix(".js") { modules.append(address) }
    }
    #expect(modules.count > 20)
    for module in modules {
      let text = String(decoding: try await bench.respond(.get, "/" + module).body.collect(), as: UTF8.self)
      #expect(text.firstMatch(of: #/[`"'(]\/(?:v1|viewer|healthz|openapi)/#) == nil, "\(module) has an absolute path")
    }
  }

  /// Otherwise, a request that the proxy stripped couldn't be told from one that it didn't.
  @Test func aBasePathIsNotOneOfTheServicesPaths() async throws {
    let bench = try TestBench()
    let own = Set(
      (routes(bench.context) + [ViewerFiles.route]).compactMap { route in
        route.pattern.split(separator: "/").first.map(String.init)
      })
    #expect(own.isSubset(of: BasePath.ownSegments))
    for segment in own { #expect(BasePath(serviceAt: "/\(segment)/audio") == nil) }
    #expect(BasePath(serviceAt: "/audio/v1")?.text == "/audio/v1" && BasePath(serviceAt: "/") == .root)
  }
}
