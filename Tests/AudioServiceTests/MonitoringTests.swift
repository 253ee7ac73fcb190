import Foundation
import HTTP
import S3Storage
import Testing

@testable import AudioService

/// The alert rules and the dashboard in deploy/monitoring; `deploy/operations` loads them into Prometheus.
@Suite struct MonitoringTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "../../deploy/monitoring").standardized

  /// Only nodes that share a catalog have these; deploy/operations compares the rules with such nodes.
  private static let namesOfNodes: Set = [
    "stillwave_feed_age_seconds", "stillwave_node_info", "stillwave_forwarded_waveforms_total",
  ]

  @Test("the alert rules and the dashboard name only metrics and labels that exist")
  func names() async throws {
    let keyed = try KeyedBench { $0.metricsTenants = true }
    let id = try await keyed.recording()
    _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    keyed.bench.context.metrics.watch { ServerStatistics() }
    let answer = try await keyed.respond(.get, "/metrics", key: "root")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self) + S3Figures().text(S3Figures.State())
    let lines = text.split(separator: "\n")
    let names = Set(
      lines.filter { $0.hasPrefix("# TYPE ") }.flatMap { line -> [String] in
        let words = line.split(separator: " ").map(String.init)
        return words[3] == "histogram" ? ["_bucket", "_sum", "_count"].map { words[2] + $0 } : [words[2]]
      })
    for file in ["rules.yaml", "grafana-dashboard.json"] {
      let content = try String(contentsOf: Self.folder.appending(path: file), encoding: .utf8)
      let used = Set(content.matches(of: #/stillwave_[a-z_]+/#).map { String($0.output) })
      let unknown = used.subtracting(names).subtracting(Self.namesOfNodes)
      #expect(!used.isEmpty && unknown.isEmpty, "\(file): \(unknown.sorted())")
    }
    for label in ["class", "kind", "state", "lane", "operation", "work", "outcome", "tenant"] {
      #expect(lines.contains { !$0.hasPrefix("#") && $0.contains("\(label)=\"") }, "\(label)")
    }
    await keyed.bench.runner.stop()
  }
}
