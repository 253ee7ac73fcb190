import Dispatch
import Randomness
import Testing

@Suite struct MediaSimulationTests {
  private static let histories = Histories.count(25)

  @Test(
    "whatever fails or is late, a row or an intent names each object, each row's object exists, and in the end no other",
    arguments: 0..<4)
  func invariants(batch: Int) async throws {
    let (counts, failure) = try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: "histories \(batch)").async {
        continuation.resume(with: Result { try Self.run(batch) })
      }
    }
    #expect(failure == nil)
    // That they weren't all quiet ones.
    for what in [
      "deaths", "faults", "postponed", "interruptions", "collections", "acknowledged", "waveforms", "conversions",
      "deletions", "reads", "taken over", "offsets", "joined", "failures",
    ] {
      #expect(failure != nil || counts[what] ?? 0 > Self.histories / 10, "\(what): \(counts)")
    }
  }

  /// Runs a batch of histories, one after the other in the same world, until one fails.
  private static func run(_ batch: Int) throws -> (counts: [String: Int], failure: String?) {
    let world = try SimulatedWorld()
    var counts: [String: Int] = [:]
    for history in 0..<histories {
      let seed = batch * 1_000_000 + history
      let simulation = try MediaSimulation(seed: seed, isBig: history % 6 == 5, in: world)
      try simulation.run()
      counts.merge(simulation.counts, uniquingKeysWith: +)
      if !simulation.violations.isEmpty {
        return (counts, "history \(seed), seed \(TestSeed.value): \(simulation.violations.prefix(4))")
      }
    }
    return (counts, nil)
  }
}
