import HTTP
import Jobs
import Terms
import Testing

@testable import AudioService

/// Long bodies stay in memory while they are read and stored, so their number is limited.
@Suite struct FairLaneTests {
  private let lane = FairLane(
    .system, label: "test", places: 2, perClient: 1, waiting: WaitingLimits(name: "test", total: 1, perClient: 1))
  private let one = Client(key: "1")
  private let other = Client(key: "2")

  private func request(bytes: Int) throws -> HTTPRequest {
    try HTTPRequest(method: .post, target: "/", body: [UInt8](repeating: 0x20, count: bytes))
  }

  @Test("another client's file and short ones needn't wait for a long one")
  func sharing() async throws {
    let long = try request(bytes: 65_537)
    let short = try request(bytes: 65_536)
    let inner = try await lane.intake(long, for: one, name: "waiting_labels") {
      try await lane.intake(long, for: other, name: "waiting_labels") {
        try await lane.intake(short, for: one, name: "waiting_labels") { 7 }
      }
    }
    #expect(inner == 7)
  }

  @Test("a client whose files wait already is refused")
  func refusal() async throws {
    let full = FairLane(
      .system, label: "test", places: 1, perClient: 1, waiting: WaitingLimits(name: "test", total: 0, perClient: 0))
    let long = try request(bytes: 65_537)
    let isRefused = try await full.intake(long, for: one, name: "waiting_labels") {
      do {
        return try await full.intake(long, for: one, name: "waiting_labels") { false }
      } catch ServiceError.limitReached("waiting_labels", let limit, _) {
        return limit == 0
      }
    }
    #expect(isRefused)
    #expect(try await full.intake(long, for: one, name: "waiting_labels") { 1 } == 1)
  }
}
