import Randomness
import Testing

@Suite struct NodesSimulationTests {
  private static let histories = Histories.count(25)

  @Test("nodes end each job once and keep none forever, whatever is lost, late or repeated", arguments: 0..<4)
  func invariants(batch: Int) {
    var counts: [String: Int] = [:]
    for history in 0..<Self.histories {
      let seed = batch * 1_000_000 + history
      var simulation = NodesSimulation(seed: seed, jobs: 5, hasPoison: history % 8 == 0)
      simulation.run()
      #expect(simulation.violations.isEmpty, "history \(seed): \(simulation.violations.prefix(3))")
      if !simulation.violations.isEmpty { return }
      counts.merge(simulation.counts, uniquingKeysWith: +)
    }
    // That they weren't all quiet ones.
    for what in [
      "crashes", "stops", "cuts", "drains", "failed calls", "leases lost", "interrupted", "failed", "cancellations",
      "poisoned", "postponed", "too early",
    ] {
      #expect(counts[what] ?? 0 > 0, "\(what): \(counts)")
    }
  }
}
