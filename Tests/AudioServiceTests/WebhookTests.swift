import Foundation
import HTTP
import Receivers
import Storage
import Terms
import Testing
import Webhooks

@testable import AudioService
@testable import Jobs

/// Webhooks of jobs, from the request to the receiver.
@Suite struct WebhookTests {
  private static let secret = "a secret of the tests"

  private let hand = ManualClock()

  private func bench(script: String = "finish") throws -> TestBench {
    let loopback = try #require(Network("127.0.0.0/8"))
    return try TestBench(script: script) {
      $0.clock = hand.clock
      $0.webhooks.secret = WebhookSecret(Self.secret)
      $0.webhooks.networks = [loopback]
    }
  }

  private func denoise(_ bench: TestBench, callback: String) async throws -> JobID {
    let source = try bench.recording()
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"\(callback)\"}")
    try #require(answer.status == .accepted)
    let location = try #require(answer.fields["Location"])
    return try #require(JobID(String(location.dropFirst("/v1/jobs/".count))))
  }

  private func waiting(_ bench: TestBench) throws -> Int { try bench.catalog.webhooks().count }

  @Test func theFinishedJobIsSentSigned() async throws {
    let bench = try bench()
    let receiver = try WebhookReceiver()
    let job = try await denoise(bench, callback: receiver.url)
    _ = try await bench.finished(job)
    await hand.idle()
    #expect(try waiting(bench) == 0)
    let received = try #require(receiver.received.first)
    let document = try await bench.respond(.get, "/v1/jobs/\(job)").body.collect()
    #expect(received.body == document && received.contentType == "application/json")
    #expect(String(decoding: document, as: UTF8.self).contains("\"state\":\"succeeded\""))

    let signature = try #require(received.signature)
    let match = try #require(try /t=(\d+),v1=([0-9a-f]{64})/.wholeMatch(in: signature))
    let signed = Array("\(match.1).".utf8) + received.body
    #expect(String(match.2) == HMACSHA256.hexDigest(of: signed, key: Array(Self.secret.utf8)))
    #expect(abs(try #require(Int64(match.1)) - Timestamp.now.milliseconds / 1000) < 600)
    #expect(receiver.received.count == 1 && bench.context.webhooks.deliveredCount == 1)
    await receiver.stop()
  }

  @Test func aFailedJobIsReportedToo() async throws {
    let bench = try bench(script: "failure unsupported_media false")
    let receiver = try WebhookReceiver()
    _ = try await bench.finished(denoise(bench, callback: receiver.url))
    await hand.idle()
    #expect(try waiting(bench) == 0)
    #expect(
      receiver.received.map { String(decoding: $0.body, as: UTF8.self).contains("\"state\":\"failed\"") } == [true])

    let slow = try self.bench(script: "exec sleep 1000")
    let job = try await denoise(slow, callback: receiver.url)
    await slow.begun(job)
    #expect(try await slow.respond(.delete, "/v1/jobs/\(job)").status == .accepted)
    _ = try await slow.finished(job)
    await hand.idle()
    #expect(try waiting(slow) == 0)
    let last = String(decoding: try #require(receiver.received.last).body, as: UTF8.self)
    #expect(receiver.received.count == 2 && last.contains("\"state\":\"cancelled\""))
    await receiver.stop()
    await slow.runner.stop()
  }

  @Test func anAddressInsideAPrivateNetworkIsRefused() async throws {
    let bench = try bench()
    let source = try bench.recording()
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"http://10.0.0.1/\"}")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    #expect(answer.status.code == 422 && text.contains("\"callback_refused\""), "\(text)")
    #expect(try waiting(bench) == 0 && bench.catalog.jobs(limit: 9).isEmpty)
  }

  @Test func withoutASecretThereAreNone() async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"https://a.example/\"}")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    #expect(answer.status.code == 422 && text.contains("\"webhooks_off\"") && text.contains("--webhook-secret"))
  }
}
