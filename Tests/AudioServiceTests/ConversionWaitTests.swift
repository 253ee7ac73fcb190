import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// A request for a conversion waits for it, but not forever.
@Suite struct ConversionWaitTests {
  /// The job's child waits to be released.
  private static let held = "[ $command != convert ] || read -r line < $folder/hold; finish"

  private func ask(_ bench: TestBench, _ source: Recording) async throws -> HTTPResponse {
    try await bench.respond(.get, "/v1/recordings/\(source.id)/audio?format=flac")
  }

  /// A service that waits `seconds` for conversions, which don't end before the probe is released.
  private func held(waiting seconds: Double) throws -> (TestBench, Recording) {
    let bench = try TestBench(script: Self.held) { $0.conversionWaitSeconds = seconds }
    try bench.holdProbe()
    return (bench, try bench.recording())
  }

  @Test("one that takes longer gets 503 and Retry-After; then its file is there, made by one job")
  func slow() async throws {
    let (bench, source) = try held(waiting: 0.01)
    for _ in 1...2 {
      let response = try await ask(bench, source)
      #expect(response.status == .serviceUnavailable && response.fields["Retry-After"] == "5")
      let text = String(decoding: try await response.body.collect(), as: UTF8.self)
      let job = try #require(try bench.catalog.jobs(limit: 2).first)
      #expect(text.contains("\"code\":\"converting\"") && text.contains("\(job.id)"), "\(text)")
    }
    let jobs = try bench.catalog.jobs(limit: 2)
    #expect(jobs.map(\.kind) == [.convert])
    try await bench.releaseProbe()
    #expect(try await bench.finished(jobs[0].id).state == .succeeded)
    let response = try await ask(bench, source)
    #expect(response.status == .ok)
    #expect(try await response.body.collect() == Array("sound\n".utf8))
    #expect(try bench.catalog.jobs(limit: 2).count == 1)
  }

  @Test("the wait ends with the job, however long it may take")
  func quick() async throws {
    let (bench, source) = try held(waiting: 1000)
    async let waiting = ask(bench, source)
    try await bench.eventually { try !bench.catalog.jobs(limit: 1).isEmpty }
    try await bench.releaseProbe()
    #expect(try await waiting.status == .ok)
  }

  @Test("stopping the service ends all waits")
  func stopping() async throws {
    let (bench, source) = try held(waiting: 1000)
    async let waiting = ask(bench, source)
    try await bench.eventually { try !bench.catalog.jobs(limit: 1).isEmpty }
    bench.runner.live.endWaits()
    #expect(try await waiting.status == .serviceUnavailable)
    try await bench.releaseProbe()
    _ = try await bench.finished(try #require(try bench.catalog.jobs(limit: 1).first).id)
  }

  @Test("a failed one says why, and the next request starts it again")
  func failing() async throws {
    let bench = try TestBench(script: "[ $command != convert ] || failure unsupported_output false; finish")
    let source = try bench.recording()
    for attempt in 1...2 {
      #expect(try await ask(bench, source).status.code == 422)
      #expect(try bench.catalog.jobs(limit: 9).count == attempt)
    }
  }
}
