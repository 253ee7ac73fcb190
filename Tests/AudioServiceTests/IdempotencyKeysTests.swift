import Foundation
import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct IdempotencyKeysTests {
  private func post(
    _ bench: TestBench, _ target: String = "/v1/recordings", key: String = "k", _ fields: HTTPFields = [:],
    _ body: String = "RIFF"
  ) async throws -> (status: Int, location: String?, text: String) {
    var fields = fields
    fields["Idempotency-Key"] = key
    let response = try await bench.respond(.post, target, fields: fields, body: body)
    return (
      response.status.code, response.fields["Location"],
      String(decoding: try await response.body.collect(), as: UTF8.self)
    )
  }

  private func count(_ bench: TestBench) throws -> Int { try bench.catalog.recordings(limit: 99).count }

  @Test func aRepeatedUploadGetsTheFirstAnswerAlsoAfterARestart() async throws {
    let folder = try TemporaryFolder()
    let bench = try TestBench(in: folder)
    let first = try await post(bench)
    #expect(first.status == 201 && first.text.contains("\"state\":\"queued\""))
    #expect(try await post(bench) == first)
    let recording = try #require(try bench.catalog.recordings(limit: 1).first)
    _ = try await bench.finished(try #require(recording.waveformJob))
    #expect(try await post(bench) == first)
    // No room for new jobs, but a repeated request needs none.
    let next = try TestBench(in: folder) {
      $0.maximumQueuedJobs = 0
      $0.reservedDiskBytes = .max
    }
    #expect(try await post(next) == first)
    #expect(try count(next) == 1)
    #expect(try FileManager.default.contentsOfDirectory(atPath: next.store.directory + "/incoming") == [])
  }

  @Test func requestsAreComparedByContentAndName() async throws {
    let bench = try TestBench()
    let first = try await post(bench, "/v1/recordings?name=a.wav")
    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b--\r\n"
    let type: HTTPFields = ["Content-Type": "multipart/form-data; boundary=b"]
    #expect(try await post(bench, type, form) == first)
    for (target, body) in [("?name=a.wav", "RIFX"), ("?name=b.wav", "RIFF"), ("", "RIFF"), ("?name=a.wav", "")] {
      let other = try await post(bench, "/v1/recordings" + target, [:], body)
      #expect(other.status == 422 && other.text.contains("\"code\":\"idempotency_key_reused\""))
    }
    #expect(try await post(bench, key: "another").status == 201)
    #expect(try count(bench) == 2)
    await bench.runner.stop()
  }

  private func post(
    _ bench: TestBench, _ fields: HTTPFields, _ body: String
  ) async throws -> (status: Int, location: String?, text: String) {
    try await post(bench, "/v1/recordings", fields, body)
  }

  private func post(
    _ bench: TestBench, _ target: String, _ fields: HTTPFields, _ body: String
  ) async throws -> (status: Int, location: String?, text: String) {
    try await post(bench, target, key: "k", fields, body)
  }

  @Test func aKeyBelongsToItsClient() async throws {
    let bench = try TestBench(script: "! grep -q RIFX \"$source\" || { finish; exit; }; \(TestBench.heldProbe)")
    try bench.holdProbe()
    @Sendable func upload(_ body: String, from peer: String) async throws -> HTTPResponse {
      try await bench.respond(.post, "/v1/recordings", fields: ["Idempotency-Key": "k"], body: body, from: peer)
    }
    async let first = upload("RIFF", from: "192.0.2.1:1")
    try await bench.eventually { bench.isProbing }
    // A key in use by one client is free for another, which doesn't get the first one's answer.
    let second = try await upload("RIFX", from: "192.0.2.2:1")
    try await bench.releaseProbe()
    let answers = [try await first, second]
    #expect(answers.map(\.status.code) == [201, 201])
    #expect(answers[0].fields["Location"] != answers[1].fields["Location"])
    let again = try await upload("RIFF", from: "192.0.2.1:2")
    #expect(again.fields["Location"] == answers[0].fields["Location"])
    #expect(try await upload("RIFF", from: "192.0.2.2:2").status.code == 422)
    await bench.runner.stop()
  }

  @Test func aRequestWhoseKeyIsInUseIsRejectedAtOnce() async throws {
    let bench = try TestBench(script: TestBench.heldProbe)
    try bench.holdProbe()
    async let first = post(bench)
    try await bench.eventually { bench.isProbing }
    let second = try await post(bench)
    #expect(second.status == 409 && second.text.contains("\"code\":\"idempotency_key_in_use\""))
    try await bench.releaseProbe()
    #expect(try await first.status == 201)
    #expect(try await post(bench) == first)
    #expect(try count(bench) == 1)
    await bench.runner.stop()
  }

  @Test func aRequestWhoseKeyIsInUseOnAnotherNodeIsRejected() async throws {
    func holder(_ name: String) -> LeaseHolder { LeaseHolder(name: name, terms: LeaseHolder.Terms()) }
    let bench = try TestBench(script: TestBench.heldProbe, holder: holder("one"))
    let path = bench.configuration.dataDirectory + "/catalog.sqlite"
    let other = try Catalog(path: path, holder: holder("two")).of(.none)
    let scope = "in-process POST /v1/recordings"
    try bench.holdProbe()
    async let first = post(bench)
    try await bench.eventually { bench.isProbing }
    #expect(try other.holdKey(scope: scope, key: "k") == .inUse)
    try await bench.releaseProbe()
    let answer = try await first
    #expect(answer.status == 201)
    guard case .held(let kept?) = try other.holdKey(scope: scope, key: "k") else {
      Issue.record("the other node finds the answer")
      return
    }
    #expect(kept.location == answer.location)
    #expect(try await post(bench).status == 409)
    try other.releaseKey(scope: scope, key: "k")
    #expect(try await post(bench) == answer)
    // A refusal gives the key back, too.
    #expect(try await post(bench, key: "refused", [:], "").status == 400)
    #expect(try other.holdKey(scope: scope, key: "refused") == .held(nil))
    await bench.runner.stop()
  }

  @Test func aRefusalIsNotKept() async throws {
    let bench = try TestBench(
      script:
        "[ $command != probe ] || [ -f $folder/again ] || { touch $folder/again; failure unsupported_media false; }; "
        + "finish"
    )
    #expect(try await post(bench).status == 415)
    #expect(try await post(bench).status == 201)
    #expect(try count(bench) == 1)
    await bench.runner.stop()
  }

  @Test func anAnswerIsKeptForADay() async throws {
    let bench = try TestBench()
    let first = try await post(bench)
    let hour: Int64 = 3_600_000
    for (hours, isSame) in [(Int64(23), true), (25, false)] {
      await bench.context.uploads.removeExpired(now: Timestamp(milliseconds: Timestamp.now.milliseconds + hours * hour))
      #expect(try await (post(bench) == first) == isSame)
    }
    await bench.runner.stop()
  }

  @Test func aRepeatedDenoiseRequestGetsTheFirstAnswer() async throws {
    let bench = try TestBench()
    let (source, other) = (try bench.recording(), try bench.recording())
    let path = "/v1/recordings/\(source.id)/denoise"
    let body = "{\"strength\":\"gentle\"}"
    let first = try await post(bench, path, key: "k", [:], body)
    #expect(first.status == 202 && first.location?.hasPrefix("/v1/jobs/") == true)
    #expect(try await post(bench, path, key: "k", [:], body) == first)
    let job = try #require(try bench.catalog.jobs(limit: 9).first)
    _ = try await bench.finished(job.id)
    _ = try bench.catalog.deleteRecording(source.id)
    #expect(try await post(bench, path, key: "k", [:], body) == first)
    #expect(try bench.catalog.jobs(limit: 9).count == 1)
    let changed = try await post(bench, path, key: "k", [:], "{}")
    #expect(changed.status == 422 && changed.text.contains("\"code\":\"idempotency_key_reused\""))
    // The same text for another resource is another key.
    #expect(try await post(bench, "/v1/recordings/\(other.id)/denoise", key: "k", [:], "{}").status == 202)
    await bench.runner.stop()
  }

  @Test("a key is one word", arguments: ["", "two words", "ключ", String(repeating: "k", count: 256)])
  func badKey(key: String) async throws {
    let bench = try TestBench()
    let answer = try await post(bench, key: key)
    #expect(answer.status == 400 && answer.text.contains("\"parameter\":\"Idempotency-Key\""))
    #expect(try count(bench) == 0)
  }
}

@Suite struct ReplayTests {
  @Test func aReplayedAnswerIsMarked() async throws {
    let bench = try TestBench()
    let key: HTTPFields = ["Idempotency-Key": "k"]
    let upload = "/v1/recordings?name=a.wav"
    #expect(try await bench.respond(.post, upload, fields: key, body: "RIFF").fields["Idempotency-Replayed"] == nil)
    let again = try await bench.respond(.post, upload, fields: key, body: "RIFF")
    #expect(again.status == .created && again.fields["Idempotency-Replayed"] == "true")
    let denoise = "/v1/recordings/\(try bench.recording().id)/denoise"
    #expect(try await bench.respond(.post, denoise, fields: key).fields["Idempotency-Replayed"] == nil)
    #expect(try await bench.respond(.post, denoise, fields: key).fields["Idempotency-Replayed"] == "true")
    // A rejection isn't an answer to keep.
    let other = try await bench.respond(.post, denoise, fields: key, body: "{\"strength\":\"strong\"}")
    #expect(other.status == .unprocessableContent && other.fields["Idempotency-Replayed"] == nil)
    await bench.runner.stop()
  }
}
