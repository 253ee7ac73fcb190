import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// Work on demand, whose time counts as that of jobs.
@Suite struct JobSecondsCounterTests {
  private let ours = Tenant("ours") ?? .none

  @Test("previews, spectra, parts and pictures count toward the seconds of jobs, and are refused when those are spent")
  func seconds() async throws {
    let keyed = try KeyedBench(
      KeyedBench.lines(limits: ["job_seconds_per_day": 1000]),
      script: "[ $command != spectrum ] || echo '{\"spectrum\":{\"frequencies\":[0],\"power_db\":[-81.2]}}'; finish")
    let id = try await keyed.recording()
    let recording = try #require(try keyed.bench.catalog.recording(id))
    try keyed.bench.makeSound(of: recording)
    try keyed.bench.makeWaveform(of: recording)
    let accounts = keyed.bench.context.accounts
    let path = "/v1/recordings/\(id)"
    let requests: [(HTTPMethod, String, String)] = [
      (.post, "/denoise/preview", "{\"window\":{\"start\":0,\"end\":0.5},\"noise\":{\"quantile\":0.2}}"),
      (.get, "/spectrum?start=0&end=0.5", ""), (.get, "/audio?start=0&end=0.5", ""),
      (.get, "/audio?format=flac&start=0&end=0.5", ""), (.get, "/waveform.png", ""), (.get, "/waveform.svg", ""),
    ]
    for (method, rest, body) in requests {
      let before = (accounts.spent[ours] ?? 0, try keyed.bench.catalog.jobSeconds()[ours] ?? 0)
      let response = try await keyed.respond(method, path + rest, body: body)
      _ = try? await response.body.collect()
      // Perhaps the catalog has them already.
      try await keyed.bench.eventually {
        let counted = try keyed.bench.catalog.jobSeconds()[ours] ?? 0
        return accounts.spent[ours] ?? 0 > before.0 || counted > before.1
      }
      #expect(response.status != .tooManyRequests, "\(rest)")
    }
    _ = accounts.spend(1000, of: ours)
    for (method, rest, body) in requests {
      let response = try await keyed.respond(method, path + rest, body: body)
      let text = String(decoding: try await response.body.collect(), as: UTF8.self)
      #expect(response.status == .tooManyRequests, "\(rest)")
      #expect(text.contains("limit_job_seconds_per_day") && response.fields["Retry-After"] != nil, "\(rest) \(text)")
    }
    let usage = String(decoding: try await keyed.respond(.get, "/v1/usage").body.collect(), as: UTF8.self)
    #expect(usage.contains(#/"job_seconds_per_day":\{"limit":1000,"used":1\d\d\d/#), "\(usage)")
    // The catalog gets them with the next count, once.
    let counter = JobSecondsCounter(
      accounts, keyed.bench.catalog, keyed.bench.context.work, keyed.bench.context.log)
    for _ in 0..<3 { counter.count() }
    try await keyed.bench.eventually { accounts.spent.isEmpty }
    let counted = try keyed.bench.catalog.jobSeconds()[ours] ?? 0
    #expect(counted >= 1000 && counted < 2000)
    await keyed.bench.runner.stop()
  }
}
