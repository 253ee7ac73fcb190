import Testing
import Webhooks

@testable import AudioService
@testable import Jobs
@testable import Storage

/// The clock of this machine is wrong, and the catalog's is right.
@Suite struct CatalogTimeTests {
  private let bench: TestBench

  init() throws {
    bench = try TestBench(script: "gate; finish") { $0.webhooks.secret = WebhookSecret("a secret of the tests") }
  }

  /// Says how far this machine's clock is ahead of the catalog's, and returns the catalog's time.
  private func lead(by seconds: Double) -> Timestamp {
    let right = Timestamp.now + -seconds
    bench.catalog.note(clock: right)
    return right
  }

  private func isNear(_ one: Timestamp, _ other: Timestamp) -> Bool {
    abs(one.milliseconds - other.milliseconds) < 300_000
  }

  @Test("a recording is as old as the catalog's clock says")
  func age() async throws {
    let right = lead(by: 1200)
    let answer = try await bench.respond(.post, "/v1/recordings", body: "RIFF")
    #expect(answer.status == .created)
    let made = try #require(try bench.catalog.recordings(limit: 1).first)
    #expect(isNear(made.createdAt, right))
  }

  @Test("a webhook is due when the catalog's clock says so")
  func webhook() async throws {
    let source = try bench.recording()
    let right = lead(by: 1200)
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"https://a.example/\"}")
    #expect(answer.status == .accepted)
    let webhook = try #require(try bench.catalog.webhooks().first?.webhook)
    #expect(isNear(webhook.notBefore, right))
  }

  @Test("an upload expires by the catalog's clock")
  func expiry() async throws {
    let right = lead(by: 7200)
    let answer = try await bench.tus.send(.post, "/v1/uploads", ["Upload-Length": "4"])
    #expect(answer.status == 201)
    let upload = try #require(try bench.catalog.unfinishedUploads().first)
    #expect(isNear(upload.expiresAt, right + bench.context.configuration.emptyUploadExpirySeconds))
    let head = try await bench.tus.head("/v1/uploads/\(upload.id)")
    #expect(head.status == 200)
  }
}
