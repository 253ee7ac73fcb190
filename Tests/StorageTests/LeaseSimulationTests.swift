import Randomness
import Testing

@Suite struct LeaseSimulationTests {
  private static let histories = Histories.count(150)

  @Test("leases keep their promises, whatever is lost, late or repeated", arguments: 0..<4)
  func invariants(batch: Int) {
    var counts: [String: Int] = [:]
    for history in 0..<Self.histories {
      let seed = batch * 1_000_000 + history
      var simulation = LeaseSimulation(seed: seed, jobs: 3)
      simulation.run()
      #expect(simulation.violations.isEmpty, "history \(seed): \(simulation.violations.prefix(3))")
      if !simulation.violations.isEmpty { return }
      counts.merge(simulation.counts, uniquingKeysWith: +)
    }
    // That they weren't all quiet ones.
    for what in ["crashes", "stops", "refused", "dropped", "succeeded", "failed", "interrupted"] {
      #expect(counts[what] ?? 0 > 0, "\(what): \(counts)")
    }
  }
}
