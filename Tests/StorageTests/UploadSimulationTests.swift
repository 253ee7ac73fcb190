import Randomness
import Testing

@Suite struct UploadSimulationTests {
  private static let histories = Histories.count(75)

  @Test("no acknowledged byte of an upload is lost or changed, whatever is late, lost or repeated", arguments: 0..<4)
  func invariants(batch: Int) {
    var counts: [String: Int] = [:]
    for history in 0..<Self.histories {
      let seed = batch * 1_000_000 + history
      var simulation = UploadSimulation(seed: seed)
      simulation.run()
      #expect(simulation.violations.isEmpty, "history \(seed): \(simulation.violations.prefix(3))")
      if !simulation.violations.isEmpty { return }
      counts.merge(simulation.counts, uniquingKeysWith: +)
    }
    // That they weren't all quiet ones.
    for what in ["crashes", "stops", "refused", "taken over", "acknowledged"] {
      #expect(counts[what] ?? 0 > Self.histories / 2, "\(what): \(counts)")
    }
  }
}
