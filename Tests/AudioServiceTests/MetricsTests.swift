import Foundation
import HTTP
import Storage
import Terms
import Testing

@testable import AudioService

@Suite struct MetricsTests {
  @Test func aHistogramCountsDurationsUpToEachBound() {
    let histogram = Histogram.ofSeconds()
    for seconds in [-1, 0.001, 0.0011, 1000] { histogram.add(seconds) }
    let lines = histogram.lines("x_seconds", labels: "kind=\"a\"").split(separator: "\n")
    #expect(lines.first == "x_seconds_bucket{kind=\"a\",le=\"0.001\"} 2")
    #expect(lines.contains("x_seconds_bucket{kind=\"a\",le=\"0.005\"} 3"))
    #expect(lines.contains("x_seconds_bucket{kind=\"a\",le=\"600.0\"} 3"))
    #expect(lines.contains("x_seconds_bucket{kind=\"a\",le=\"+Inf\"} 4"))
    #expect(lines.contains("x_seconds_sum{kind=\"a\"} 1000.0021"))
    #expect(lines.last == "x_seconds_count{kind=\"a\"} 4")
    #expect(histogram.lines("x", labels: "").hasSuffix("x_count 4\n"))
  }

  /// Prometheus' text format (version 0.0.4), as far as the service uses it.
  @Test func everyLineIsAMetricThatHasAHelpAndAType() async throws {
    let keyed = try KeyedBench(KeyedBench.lines() + KeyedBench.line("ours2", tenant: "a \"b\" \\c", ["write", "read"]))
    {
      $0.metricsTenants = true
    }
    let id = try await keyed.recording()
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    let other = try await keyed.recording(key: "ours2")
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(other)?.waveformJob))
    let answer = try await keyed.respond(.get, "/metrics", key: "root")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    var (types, helps): ([Substring: Substring], Set<Substring>) = ([:], [])
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 3)
      if line.hasPrefix("# HELP ") { helps.insert(words[2]) }
      if line.hasPrefix("# TYPE ") { types[words[2]] = words[3] }
      guard !line.hasPrefix("#") else { continue }
      let metric = try #require(
        line.firstMatch(of: #/^([a-z_]+)(\{([a-z]+="([^"\\\n]|\\["\\n])*",?)+\})? [0-9.e+-]+$/#), "\(line)")
      let names = ["", "_bucket", "_sum", "_count"].map { suffix in
        metric.1.hasSuffix(suffix) ? metric.1.dropLast(suffix.count) : ""
      }
      #expect(names.contains { types[$0] != nil && helps.contains($0) }, "\(line)")
    }
    for part in [
      "stillwave_jobs_total{kind=\"waveform\",state=\"succeeded\"}",
      "stillwave_job_run_seconds_count{kind=\"waveform\"}",
      "stillwave_catalog_seconds_bucket{operation=\"write\"", "stillwave_disk_free_bytes ",
      "stillwave_tenant_recordings{tenant=\"ours\"} 1", "stillwave_tenant_stored_bytes{tenant=\"a \\\"b\\\" \\\\c\"} 6",
    ] {
      #expect(text.contains(part), "\(part)")
    }
    await keyed.bench.runner.stop()
  }

  @Test("a service that is about to stop isn't ready")
  func readiness() async throws {
    let bench = try TestBench()
    func isReady() async throws -> Bool {
      let text = String(decoding: try await bench.respond(.get, "/metrics").body.collect(), as: UTF8.self)
      return text.contains("\nstillwave_ready 1\n")
    }
    #expect(try await isReady())
    bench.context.readiness.drain()
    #expect(try await !isReady())
  }

  @Test func withoutAskingTenantsAreNotNamed() async throws {
    let keyed = try KeyedBench()
    _ = try await keyed.recording()
    let answer = try await keyed.respond(.get, "/metrics", key: "root")
    #expect(try await !String(decoding: answer.body.collect(), as: UTF8.self).contains("ours"))
    await keyed.bench.runner.stop()
  }
}
