import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService

@Suite struct WebhookTests {
  private static let secret = "a secret of the tests"

  private func bench(
    script: String = "finish", in folder: TemporaryFolder? = nil, _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> TestBench {
    let loopback = try #require(Network("127.0.0.0/8"))
    return try TestBench(script: script, in: folder) {
      $0.webhookSecret = WebhookSecret(Self.secret)
      $0.webhookNetworks = [loopback]
      $0.webhookPauseSeconds = 0.001
      change(&$0)
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
    try await bench.eventually { try waiting(bench) == 0 }
    let received = try #require(receiver.received.first)
    let document = try await bench.respond(.get, "/v1/jobs/\(job)").body.collect()
    #expect(received.body == document && received.contentType == "application/json")
    #expect(String(decoding: document, as: UTF8.self).contains("\"state\":\"succeeded\""))

    let signature = try #require(received.signature)
    let match = try #require(try /t=(\d+),v1=([0-9a-f]{64})/.wholeMatch(in: signature))
    let signed = Array("\(match.1).".utf8) + received.body
    #expect(String(match.2) == HMACSHA256.hexDigest(of: signed, key: Array(Self.secret.utf8)))
    #expect(abs(try #require(Int64(match.1)) - Timestamp.now.milliseconds / 1000) < 600)
    #expect(receiver.received.count == 1 && bench.context.webhooks.delivered.value == 1)
    await receiver.stop()
  }

  @Test func aSignatureIsOfItsSecondAndItsBody() throws {
    let secret = try #require(WebhookSecret(Self.secret))
    let body = Array("{}".utf8)
    let signature = secret.signature(of: body, at: Timestamp(milliseconds: 1_795_233_906_789))
    #expect(
      signature
        == "t=1795233906,v1="
        + HMACSHA256.hexDigest(of: Array("1795233906.{}".utf8), key: Array(Self.secret.utf8)))
  }

  @Test func whatIsNotTakenIsSentAgain() async throws {
    let bench = try bench { $0.webhookTimeoutSeconds = 0.3 }
    let receiver = try WebhookReceiver(
      .answers(500), .redirects("http://169.254.169.254/latest/meta-data/"), .answers(404), .staysSilent)
    _ = try await denoise(bench, callback: receiver.url)
    try await bench.eventually { try waiting(bench) == 0 }
    #expect(receiver.received.count == 5)
    #expect(Set(receiver.received.map(\.body)).count == 1)
    #expect(bench.context.webhooks.delivered.value == 1 && bench.context.webhooks.failed.value == 0)
    await receiver.stop()
  }

  @Test func aReceiverThatNeverTakesItIsGivenUp() async throws {
    let bench = try bench { $0.webhookAttempts = 3 }
    let receiver = try WebhookReceiver(.answers(500), .answers(500), .answers(500))
    _ = try await denoise(bench, callback: receiver.url)
    try await bench.eventually { try waiting(bench) == 0 }
    #expect(receiver.received.count == 3 && bench.context.webhooks.failed.value == 1)
    await receiver.stop()
  }

  @Test func anAddressThatMayNotBeCalledIsGivenUpAtOnce() async throws {
    // A name, which nobody can judge before it is looked up.
    let bench = try bench { $0.webhookNetworks = [] }
    let receiver = try WebhookReceiver()
    let named = receiver.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    _ = try await denoise(bench, callback: named)
    try await bench.eventually { try waiting(bench) == 0 }
    #expect(receiver.received.isEmpty && bench.context.webhooks.failed.value == 1)
    #expect(bench.logged.all.filter { $0.contains("webhook") } == ["error a webhook was given up: refused"])
    await receiver.stop()
  }

  @Test func pausesGrow() async throws {
    let bench = try bench { $0.webhookPauseSeconds = 1000 }
    let receiver = try WebhookReceiver(.answers(500))
    let job = try await denoise(bench, callback: receiver.url)
    try await bench.eventually { try bench.catalog.webhooks().first?.webhook.attempts == 1 }
    let first = try #require(try bench.catalog.webhooks().first?.webhook)
    let pause = first.notBefore.milliseconds - Timestamp.now.milliseconds
    #expect(pause > 900_000 && pause <= 1_000_000)
    await bench.context.webhooks.stop()

    // The second attempt, in the next life of the service, once its time has come.
    var due = first
    due.notBefore = .now
    try bench.catalog.update(due)
    let again = try self.bench(in: bench.folder) { $0.webhookPauseSeconds = 1000 }
    try again.context.webhooks.resume()
    try await again.eventually { try waiting(again) == 0 }
    #expect(receiver.received.count == 2)
    #expect(try again.catalog.job(job)?.state == .succeeded)
    await receiver.stop()
  }

  @Test func whatAStopLeavesUndeliveredTheNextStartDelivers() async throws {
    let folder = try TemporaryFolder()
    let receiver = try WebhookReceiver(.staysSilent)
    let first = try bench(in: folder)
    let job = try await denoise(first, callback: receiver.url)
    try await first.eventually { receiver.received.count == 1 }
    await first.context.webhooks.stop()
    #expect(try first.catalog.webhooks().map(\.webhook.attempts) == [0])

    let second = try bench(in: folder)
    try second.context.webhooks.resume()
    try await second.eventually { try waiting(second) == 0 }
    #expect(receiver.received.count == 2)
    #expect(String(decoding: try #require(receiver.received.last).body, as: UTF8.self).contains(job.text))
    await receiver.stop()
  }

  @Test func aJobThatEndsBadlyIsToldToo() async throws {
    let bench = try bench(script: "failure unsupported_media false")
    let receiver = try WebhookReceiver()
    _ = try await denoise(bench, callback: receiver.url)
    try await bench.eventually { try waiting(bench) == 0 }
    #expect(
      receiver.received.map { String(decoding: $0.body, as: UTF8.self).contains("\"state\":\"failed\"") } == [true])

    let slow = try self.bench(script: "exec sleep 1000")
    let job = try await denoise(slow, callback: receiver.url)
    try await slow.eventually { slow.isRunning(job) }
    #expect(try await slow.respond(.delete, "/v1/jobs/\(job)").status == .accepted)
    try await slow.eventually { try waiting(slow) == 0 }
    let last = String(decoding: try #require(receiver.received.last).body, as: UTF8.self)
    #expect(receiver.received.count == 2 && last.contains("\"state\":\"cancelled\""))
    await receiver.stop()
    await slow.runner.stop()
  }

  @Test(
    "a request with an address inside a private network is refused",
    arguments: [
      "http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "http://[fd00::1]:8080/",
      "http://[::ffff:192.168.0.1]/", "https://192.168.1.1/", "http://0x0a000001/", "http://0.0.0.0/",
    ])
  func privateAddress(url: String) async throws {
    let bench = try bench()
    let source = try bench.recording()
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"\(url)\"}")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    #expect(answer.status.code == 422 && text.contains("\"callback_refused\""), "\(text)")
    #expect(try waiting(bench) == 0 && bench.catalog.jobs(limit: 9).isEmpty)
  }

  @Test func aNameIsJudgedByTheAddressThatIsCalled() async throws {
    let receiver = try WebhookReceiver()
    let named = receiver.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    let strict = WebhookNetworks(allowed: [])
    let open = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    func call(_ url: String, _ networks: WebhookNetworks) -> WebhookOutcome {
      WebhookCall.post(Array("{}".utf8), to: url, fields: [], seconds: 30, networks: networks)
    }
    #expect(call(named, strict) == .refused)
    #expect(call(receiver.url, strict) == .refused)
    #expect(receiver.received.isEmpty)
    #expect(call(named, open) == .answered(204))
    #expect(call("file:///etc/passwd", open) != .answered(200))
    await receiver.stop()
    guard case .failed = call(receiver.url, open) else {
      Issue.record("nobody listens there")
      return
    }
  }

  @Test func aRedirectIsNotFollowed() async throws {
    let other = try WebhookReceiver()
    let receiver = try WebhookReceiver(.redirects(other.url), .redirects("http://169.254.169.254/"))
    let open = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    for _ in 0..<2 {
      let outcome = WebhookCall.post([], to: receiver.url, fields: [], seconds: 30, networks: open)
      #expect(outcome == .answered(302) && !outcome.isDelivered)
    }
    #expect(other.received.isEmpty)
    await receiver.stop()
    await other.stop()
  }

  @Test func anAnswerWithoutEndIsNotListenedTo() async throws {
    let receiver = try WebhookReceiver(.answersWithoutEnd)
    let open = WebhookNetworks(allowed: [try #require(Network("127.0.0.0/8"))])
    let outcome = WebhookCall.post([], to: receiver.url, fields: [], seconds: 600, networks: open)
    #expect(outcome == .answered(200))
    await receiver.stop()
  }

  @Test func withoutASecretThereAreNone() async throws {
    let bench = try TestBench()
    let source = try bench.recording()
    let answer = try await bench.respond(
      .post, "/v1/recordings/\(source.id)/denoise", body: "{\"callback_url\":\"https://a.example/\"}")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    #expect(answer.status.code == 422 && text.contains("\"webhooks_off\"") && text.contains("--webhook-secret"))
  }

  @Test func theSecretShowsItselfNowhere() throws {
    var configuration = Configuration()
    configuration.webhookSecret = WebhookSecret(Self.secret)
    var shown = ""
    dump(configuration, to: &shown)
    #expect(!"\(configuration)".contains(Self.secret) && !shown.contains(Self.secret))
    #expect(!shown.contains("\(Array(Self.secret.utf8))"))
    #expect(WebhookSecret("too short") == nil)
  }
}
