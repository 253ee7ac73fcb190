import HTTP
import PresentRows
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// A change must not be made if its condition doesn't hold (RFC 9110 §13.2.1).
@Suite struct ConditionalChangeTests {
  private func etag(_ bench: TestBench, _ path: String) async throws -> String {
    try #require(try await bench.respond(.get, path).fields["ETag"])
  }

  @Test func aRenameAppliesOnlyToTheGivenVersion() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let path = "/v1/recordings/\(recording.id)"
    let first = try await etag(bench, path)
    let changed = try await bench.respond(.patch, path, fields: ["If-Match": first], body: "{\"name\":\"a.wav\"}")
    #expect(changed.status == .ok)
    #expect(try await changed.fields["ETag"] == etag(bench, path))
    let late = try await bench.respond(.patch, path, fields: ["If-Match": first], body: "{\"name\":\"b.wav\"}")
    #expect(late.status == .preconditionFailed)
    #expect(try bench.catalog.recording(recording.id)?.name == "a.wav")
  }

  @Test func aDeletionAppliesOnlyToTheGivenVersion() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let path = "/v1/recordings/\(recording.id)"
    let refused = try await bench.respond(.delete, path, fields: ["If-Match": "\"other\""])
    #expect(refused.status == .preconditionFailed)
    let tag = try await etag(bench, path)
    #expect(try await bench.respond(.delete, path, fields: ["If-Match": tag]).status == .noContent)
  }

  @Test func aCancellationAppliesOnlyToTheGivenVersion() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    let refused = try await bench.respond(.delete, "/v1/jobs/\(job.id)", fields: ["If-Match": "\"other\""])
    #expect(refused.status == .preconditionFailed)
    #expect(try bench.catalog.job(job.id)?.state == .queued)
  }

  @Test func noiseRemovalAppliesOnlyToTheGivenVersion() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let path = "/v1/recordings/\(recording.id)/denoise"
    let refused = try await bench.respond(.post, path, fields: ["If-Match": "\"other\""], body: "{}")
    #expect(refused.status == .preconditionFailed)
    #expect(try bench.catalog.jobs(limit: 10).allSatisfy { $0.kind != .denoise })
  }

  @Test func answersToChangesHaveTheObjectsNewTag() async throws {
    let bench = try TestBench(script: "[ $command = probe ] || gate; finish") { $0.workerCount = 1 }
    // Occupies the one worker for the whole test, so no other job runs.
    let first = try bench.waveformJob()
    bench.runner.submit(first)
    await bench.begun(first.id)
    let uploaded = try await bench.respond(.post, "/v1/recordings", fields: ["Idempotency-Key": "k"], body: "RIFF")
    #expect(uploaded.status == .created)
    let recording = try await checkTag(bench, uploaded)
    let again = try await bench.respond(.post, "/v1/recordings", fields: ["Idempotency-Key": "k"], body: "RIFF")
    #expect(try await checkTag(bench, again) == recording)

    let cleaning = try await bench.respond(.post, recording + "/denoise", fields: ["Idempotency-Key": "d"])
    #expect(cleaning.status == .accepted)
    let job = try await checkTag(bench, cleaning)
    #expect(
      try await checkTag(bench, bench.respond(.post, recording + "/denoise", fields: ["Idempotency-Key": "d"])) == job)
    try await checkTag(bench, bench.respond(.delete, job))
    let failed = try bench.recording(state: .failed)
    try await checkTag(bench, bench.respond(.post, "/v1/recordings/\(failed.id)/waveform"))
    await bench.runner.stop()
  }

  /// Checks that an answer's tag is that of the object at its Location. Returns the location.
  @discardableResult
  private func checkTag(_ bench: TestBench, _ answer: HTTPResponse) async throws -> String {
    let location = try #require(answer.fields["Location"])
    #expect(try await answer.fields["ETag"] == etag(bench, location), "\(location)")
    #expect(answer.fields["Cache-Control"] == "no-cache")
    return location
  }

  @Test func errorsInTheHeadAreReportedWithoutReadingTheContent() async throws {
    let bench = try TestBench()
    let body = String(repeating: " ", count: 2_000_000)
    let unknown = try await bench.respond(.post, "/v1/recordings/\(RecordingID())/denoise", body: body)
    #expect(unknown.status == .notFound)
  }
}
