import HTTP
import PresentRows
import Processing
import Testing
import Waveform
import Workers

@testable import AudioService
@testable import Jobs
@testable import Storage

/// A waveform that one node builds and another one is asked for. Both have the same catalog; the other one's table of
/// jobs is `elsewhere`.
@Suite struct ForwardedWaveformsTests {
  private static let secret = "an example of thirty-two bytes.."
  private let bench: TestBench
  private let job = JobID()
  private let recording: Recording
  private let elsewhere = LiveJobs()

  init() throws {
    bench = try TestBench()
    recording = try bench.recording(state: .building, job: job)
    try bench.store.makeWorkFolder(of: job)
    let token = AttemptToken(job: job, attempt: 1, nonce: "0123456789abcdef")
    var writer = try PyramidWriter(creating: bench.growingPath(of: token), sampleRate: 1000, channels: 2)
    let samples = (0..<400_000).map { Int16(truncatingIfNeeded: $0 &* 7919) }
    try writer.append(samples.span)
    try writer.publish()
    var live = LiveJob(
      isRunning: true, attempts: 1, tenant: .none, recording: recording.id, writer: token, address: nil)
    live.progress = WorkerProgress(
      fraction: 0.5, readyFrames: writer.readyFrames, totalFrames: nil, estimatedFrames: nil)
    bench.runner.live.insert(job, live)
    elsewhere.insert(job, live)
  }

  /// A port for other nodes.
  private final class Port {
    let server: HTTPServer
    let address: String

    init(_ responder: any HTTPResponder) throws {
      var http = HTTPServerConfiguration()
      (http.port, http.loopCount) = (0, 1)
      server = HTTPServer(http, responder: responder)
      address = "\(try server.start())"
    }
  }

  private struct Answering: HTTPResponder {
    let response: HTTPResponse
    func respond(to request: HTTPRequest) -> HTTPAnswer { .now(response) }
  }

  private func secret(_ text: String = secret) throws -> NodeSecret { try #require(NodeSecret(Array(text.utf8))) }

  /// The port of the node that builds the waveform.
  private func node() throws -> NodeResponder { NodeResponder(secret: try secret(), context: bench.context) }

  private func forwarded(_ text: String = secret) throws -> ForwardedWaveforms {
    let catalog = bench.catalog
    return ForwardedWaveforms(secret: try secret(text), live: elsewhere, log: ServiceLog(bench.logged.logger)) {
      catalog.time
    }
  }

  /// Asks the other node, which answers 204 what it doesn't forward.
  private func ask(
    _ form: String, through forwarded: ForwardedWaveforms, of tenant: Tenant = .none, fields: HTTPFields = [:]
  ) async throws -> HTTPResponse {
    let routes = routes(bench.context).filter(\.showsWaveform).map { route in
      let route = forwarded.forwarding(
        ServiceRoute(route.method, route.pattern, route.rule, atOnce: { _, _, _ in .now(HTTPResponse(.noContent)) }))
      return Route(
        route.method, route.pattern,
        atOnce: { [bench] in try route.handler($0, $1, Caller(of: tenant, $0, bench.context)) })
    }
    let request = try HTTPRequest(method: .get, target: "/v1/recordings/\(recording.id)/\(form)", fields: fields)
    return try await Router(routes: routes) { error, _ in problem(for: error).response() }.respond(to: request).response
  }

  @Test(
    "a node passes on what the node that builds a waveform shows of it",
    arguments: [
      "waveform?scale=1024&channels=split", "waveform?width=9&end=1.5&measures=peak,rms", "waveform.dat?scale=512",
      "waveform.json?scale=4096", "peaks.json?width=20", "waveform.png?width=50", "waveform.svg?color=%23ff0000",
      "spectrogram?start=900&height=9",
    ])
  func forms(_ form: String) async throws {
    let port = try Port(try node())
    elsewhere.update(job) { $0.address = port.address }
    let own = try await bench.respond(.get, "/v1/recordings/\(recording.id)/\(form)")
    let other = try await ask(form, through: try forwarded())
    #expect(other.status == .ok && own.status == .ok)
    #expect(try await other.body.collect() == own.body.collect())
    for field in ["Content-Type", "Cache-Control", "Stillwave-Available-Frames", "Stillwave-Complete", "ETag"] {
      #expect(other.fields[field] == own.fields[field], "\(field)")
    }
    #expect(other.fields["Cache-Control"] == "no-store")
  }

  @Test func theFormThatAClientPrefersIsPassedOn() async throws {
    let port = try Port(try node())
    elsewhere.update(job) { $0.address = port.address }
    let fields: HTTPFields = ["Accept": "application/vnd.bbc.audiowaveform"]
    let answer = try await ask("waveform?width=9", through: try forwarded(), fields: fields)
    #expect(answer.fields["Content-Type"] == "application/vnd.bbc.audiowaveform")
  }

  @Test func nothingIsForwardedForAnotherTenantOrWithoutAnAddress() async throws {
    let (port, forwarded) = (try Port(try node()), try forwarded())
    #expect(try await ask("waveform", through: forwarded).status == .noContent)
    elsewhere.update(job) { $0.address = port.address }
    let other = try #require(Tenant("other"))
    #expect(try await ask("waveform", through: forwarded, of: other).status == .noContent)
    #expect(port.server.statistics.requests == 0)
    #expect(forwarded.forwarding(routes(bench.context)[0]).pattern == routes(bench.context)[0].pattern)
  }

  @Test("a request that the other node refuses is answered here", arguments: ["waveform?width=0", "waveform?scale=x"])
  func refused(_ form: String) async throws {
    let (port, forwarded) = (try Port(try node()), try forwarded())
    elsewhere.update(job) { $0.address = port.address }
    #expect(try await ask(form, through: forwarded).status == .noContent)
    #expect(forwarded.failures.value == 0 && bench.logged.failures == [])
  }

  @Test("a node that fails is noted once, and isn't asked again for five seconds")
  func faults() async throws {
    let stopped = try Port(try node())
    await stopped.server.stop(within: 1)
    let long = HTTPResponse(.ok, body: .bytes([UInt8](repeating: 0, count: 9 << 20)))
    let ports = try [Answering(response: HTTPResponse(.forbidden)), Answering(response: long)].map { try Port($0) }
    for address in ports.map(\.address) + [stopped.address, "evil.example/path:1"] {
      let (forwarded, noted) = (try forwarded(), bench.logged.failures.count)
      elsewhere.update(job) { $0.address = address }
      for _ in 0..<3 { #expect(try await ask("waveform", through: forwarded).status == .noContent) }
      #expect(forwarded.failures.value == 1 && forwarded.successes.value == 0, "\(address)")
      #expect(bench.logged.failures.count == noted + 1)
    }
    #expect(ports.map(\.server.statistics.requests) == [1, 1])
  }

  @Test func aNodeWithAnotherSecretGetsNothing() async throws {
    let (port, forwarded) = (try Port(try node()), try forwarded(Self.secret + "x"))
    elsewhere.update(job) { $0.address = port.address }
    #expect(try await ask("waveform", through: forwarded).status == .noContent)
    #expect(bench.logged.failures.count == 1 && forwarded.failures.value == 1)
  }

  @Test func thePortOfOtherNodesServesNothingButGrowingWaveformsToThoseWhoHaveTheSecret() async throws {
    let port = try node()
    func answer(_ target: String, _ method: HTTPMethod = .get, signs: Bool = true) async throws -> HTTPResponse {
      var fields: HTTPFields = [:]
      if signs { fields["Authorization"] = try secret().authorization(method, target, at: bench.catalog.time) }
      return try await port.respond(to: try HTTPRequest(method: method, target: target, fields: fields)).response
    }
    let path = "/v1/recordings/\(recording.id)/waveform"
    #expect(try await answer(path).status == .ok)
    for target in [path, path + "?width=1", "/", "/healthz", "/metrics", "/v1/recordings"] {
      let refused = try await answer(target, signs: false)
      #expect(refused.status == .forbidden && refused.body.length == 0 && refused.fields.isEmpty)
    }
    let finished = try bench.recording()
    for target in [
      "/", "/healthz", "/v1/recordings", "/v1/recordings/\(recording.id)", "/v1/recordings/\(recording.id)/audio",
      "/v1/recordings/\(finished.id)/waveform", "/v1/recordings/\(RecordingID())/waveform", path + "/",
    ] { #expect(try await answer(target).status == .notFound, "\(target)") }
    for method in [HTTPMethod.post, .delete] { #expect(try await answer(path, method).status == .notFound) }
    // An attempt of another node.
    bench.runner.live.update(job) { $0.address = "10.0.0.1:1" }
    #expect(try await answer(path).status == .notFound)
  }
}
