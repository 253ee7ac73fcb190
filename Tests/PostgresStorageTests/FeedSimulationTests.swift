import Randomness
import Testing

@testable import PostgresStorage

@Suite struct FeedSimulationTests {
  private static let histories = Histories.count(50)

  @Test("no node serves what was changed more than 5 s ago, whatever is late, lost or stopped", arguments: 0..<4)
  func invariants(batch: Int) {
    let nodes = ["one", "two", "three"].map { FeedSimulation.Node($0) }
    var counts: [String: Int] = [:]
    for history in 0..<Self.histories {
      let seed = batch * 1_000_000 + history
      var simulation = FeedSimulation(seed: seed, nodes: nodes)
      simulation.run()
      #expect(simulation.violations.isEmpty, "history \(seed): \(simulation.violations.prefix(3))")
      if !simulation.violations.isEmpty { return }
      counts.merge(simulation.counts, uniquingKeysWith: +)
    }
    // That they weren't all quiet ones.
    for what in ["served", "delivered", "cuts", "stops", "ends", "failovers", "reconnected"] {
      #expect(counts[what] ?? 0 > 0, "\(what): \(counts)")
    }
  }

  // MARK: The listener's state

  @Test("what proves delivery is when a ping was sent, after the notifications before its response")
  func proof() {
    var state = ListenerState(silenceSeconds: 4)
    #expect(state.on(.listening(since: 1), at: 1.5) == [.announce, .prove(1)])
    #expect(state.on(.tick, at: 2) == [.ping])
    #expect(state.on(.tick, at: 3) == [])
    #expect(state.on(.received(["a"], response: false), at: 3.5) == [.deliver("a")])
    #expect(state.on(.received(["b", "c"], response: true), at: 4) == [.deliver("b"), .deliver("c"), .prove(2)])
    #expect(state.on(.tick, at: 5) == [.ping])
    #expect(state.on(.tick, at: 6.5) == [.reconnect(silentFor: 4.5)])
    #expect(state.on(.lost, at: 7) == [])
    #expect(state.on(.received([], response: true), at: 7) == [])
  }
}
