import HTTP
import Storage
import Testing

@testable import AudioService

/// A change with a condition that doesn't hold must not be made (RFC 9110 §13.2.1).
@Suite struct ConditionalChangeTests {
  private func etag(_ bench: TestBench, _ path: String) async throws -> String {
    try #require(try await bench.respond(.get, path).fields["ETag"])
  }

  @Test func aRenameIsMadeOnlyOfTheVersionItIsMeantFor() async throws {
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

  @Test func aDeletionIsMadeOnlyOfTheVersionItIsMeantFor() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    let path = "/v1/recordings/\(recording.id)"
    let refused = try await bench.respond(.delete, path, fields: ["If-Match": "\"other\""])
    #expect(refused.status == .preconditionFailed)
    let tag = try await etag(bench, path)
    #expect(try await bench.respond(.delete, path, fields: ["If-Match": tag]).status == .noContent)
  }

  @Test func aCancellationIsMadeOnlyOfTheVersionItIsMeantFor() async throws {
    let bench = try TestBench()
    let job = try bench.waveformJob()
    let refused = try await bench.respond(.delete, "/v1/jobs/\(job.id)", fields: ["If-Match": "\"other\""])
    #expect(refused.status == .preconditionFailed)
    #expect(try bench.catalog.job(job.id)?.state == .queued)
  }

  @Test func aRecordingIsCleanedOnlyInTheVersionItIsMeantFor() async throws {
    let bench = try TestBench()
    let recording = try bench.recording()
    try bench.makeWaveform(of: recording)
    let path = "/v1/recordings/\(recording.id)/denoise"
    let refused = try await bench.respond(.post, path, fields: ["If-Match": "\"other\""], body: "{}")
    #expect(refused.status == .preconditionFailed)
    #expect(try bench.catalog.jobs(limit: 10).allSatisfy { $0.kind != .denoise })
  }

  @Test func whatIsWrongWithoutTheContentIsToldWithoutReadingIt() async throws {
    let bench = try TestBench()
    let body = String(repeating: " ", count: 2_000_000)
    let unknown = try await bench.respond(.post, "/v1/recordings/\(RecordingID())/denoise", body: body)
    #expect(unknown.status == .notFound)
  }
}
