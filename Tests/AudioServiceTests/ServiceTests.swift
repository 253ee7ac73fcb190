import Contract
import Foundation
import HTTP
import Logging
import PresentRows
import Storage
import Testing
import Webhooks

@testable import AudioService
@testable import Jobs

/// The service as a whole, and clients' view of a running job.
@Suite struct ServiceTests {
  private func service(in folder: TemporaryFolder) throws -> Service {
    var configuration = Configuration()
    configuration.dataDirectory = folder.path + "/data"
    configuration.port = 0
    return try Service(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }

  @Test func aServiceStartsOnAPortOfItsOwnAndStops() async throws {
    let folder = try TemporaryFolder()
    let service = try service(in: folder)
    #expect(try service.start().hasPrefix("127.0.0.1:"))
    let response = try await service.respond(to: try HTTPRequest(method: .get, target: "/readyz"))
    #expect(response.status == .ok)
    await service.stop()
    withExtendedLifetime(folder) {}
  }

  @Test func leftoversOfACrashAreRemovedAtTheStart() throws {
    let folder = try TemporaryFolder()
    let bench = try TestBench(in: folder)
    let kept = try bench.recording()
    let orphan = RecordingID()
    for leftover in ["/recordings/\(orphan)", "/jobs/\(JobID())", "/removed/\(RecordingID())", "/incoming"] {
      let path = folder.path + "/data" + leftover
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try Data("x".utf8).write(to: URL(fileURLWithPath: path + "/\(RecordingID()).part"))
    }
    let service = try service(in: folder)
    for name in ["jobs", "removed", "incoming"] {
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/data/" + name) == [])
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/data/recordings") == [kept.id.text])
    withExtendedLifetime(service) {}
  }

  private func json(_ response: HTTPResponse) async throws -> [String: Any] {
    let value = try JSONSerialization.jsonObject(with: Data(try await response.body.collect()))
    return try #require(value as? [String: Any])
  }

  @Test func aRunningJobReportsItsProgress() async throws {
    let bench = try TestBench(script: "progress 0.25; gate; progress 0.5; gate -last; finish") { $0.workerCount = 1 }
    let (job, waiting) = (try bench.waveformJob(), try bench.waveformJob())
    try bench.makeGate(job.id, "-last")
    bench.runner.submit(job)
    bench.runner.submit(waiting)
    await bench.until(job.id) { $0?.fraction == 0.25 }
    let running = try await json(bench.respond(.get, "/v1/jobs/\(job.id)"))
    #expect(running["state"] as? String == "running" && running["progress"] as? Double == 0.25)
    #expect(running["eta"] is Double && running["attempts"] as? Int == 1 && running["started_at"] is String)
    let queued = try await json(bench.respond(.get, "/v1/jobs/\(waiting.id)"))
    #expect(queued["state"] as? String == "queued" && queued["eta"] is NSNull && queued["started_at"] is NSNull)
    let recording = try await json(bench.respond(.get, "/v1/recordings/\(job.recording)"))
    let waveform = try #require(recording["waveform"] as? [String: Any])
    #expect(waveform["state"] as? String == "building" && waveform["progress"] as? Double == 0.25)

    async let news = bench.respond(.get, "/v1/jobs/\(job.id)?wait=60")
    try await bench.eventually { bench.runner.live.waiterCount(of: job.id) == 1 }
    try await bench.openGate(job.id)
    #expect(try await json(news)["progress"] as? Double == 0.5)
    async let end = bench.respond(.get, "/v1/jobs/\(job.id)?wait=60")
    try await bench.eventually { bench.runner.live.waiterCount(of: job.id) == 1 }
    try await bench.openGate(job.id, "-last")
    let ended = try await json(end)
    #expect(ended["state"] as? String == "succeeded" && ended["progress"] as? Double == 1 && ended["eta"] is NSNull)
    await bench.runner.stop()
  }

  @Test(
    "the contract's schema of a denoise request accepts what the code accepts",
    arguments: [
      ("{}", true), ("{\"noise\":\"auto\",\"method\":\"wiener\",\"output\":\"residue\",\"format\":\"flac\"}", true),
      ("{\"noise\":{\"start\":0,\"end\":60},\"reduction\":0,\"sensitivity\":2,\"name\":\"a\"}", true),
      ("{\"adapt\":true}", true), ("{\"adapt\":null}", true), ("{\"adapt\":\"auto\"}", false),
      ("{\"noise\":{\"quantile\":0.9},\"strength\":\"strong\"}", true),
      (
        "{\"noise\":null,\"method\":null,\"strength\":null,\"reduction\":null,\"sensitivity\":null,\"name\":null}", true
      ),
      ("{\"noise\":{\"quantile\":0.95}}", false), ("{\"noise\":{\"start\":1}}", false), ("{\"reduction\":61}", false),
      ("{\"sensitivity\":0.4}", false), ("{\"method\":\"magic\"}", false), ("{\"format\":\"aac\"}", false),
      ("{\"callback_url\":\"https://a.example\"}", true), ("{\"callback_url\":\"ftp://a.example\"}", false),
      ("{\"link\":\"pairs\"}", true), ("{\"link\":null}", true), ("{\"link\":\"none\"}", true),
      ("{\"link\":\"stereo\"}", false), ("{\"link\":true}", false), ("{\"name\":\"\"}", false), ("[]", false),
    ])
  func denoiseSchema(body: String, isGood: Bool) async throws {
    let bench = try TestBench { $0.webhooks.secret = WebhookSecret("a secret of the tests") }
    let source = try bench.recording()
    let response = try await bench.respond(.post, "/v1/recordings/\(source.id)/denoise", body: body)
    #expect(response.status.code == (isGood ? 202 : 400))
    let violations = try OpenAPIDocument.shared.get().requestViolations(
      method: "POST", path: "/v1/recordings/{id}/denoise", body: Data(body.utf8))
    #expect(violations.isEmpty == isGood, "\(violations)")
    await bench.runner.stop()
  }
}
